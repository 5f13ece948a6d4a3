#include "codec/read.h"

#include <distdoctor/facts.h>

#include "codec/write.h"

#include <doctest/doctest.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::codec;  // NOLINT(google-build-using-namespace): a test of it

namespace {

struct Everything {
  std::uint16_t port = 7;
  std::int64_t bytes = 0;
  std::uint64_t nonce = 0;
  double ms = 0;
  bool flag = false;
  std::string text = "as it was";
  Address address = {};
  Why why = Why::not_collected;
  std::optional<int> maybe = 5;
  std::vector<Link> links = {};
  std::map<std::string, Observed<std::string>> map = {};
  std::pair<std::string, int> pair = {};
  Observed<std::map<std::string, std::string>> env = {};
  bool operator==(const Everything&) const = default;
};
template <class V, Is<Everything> T>
void fields(V& v, T& x) {
  v("port", x.port);
  v("bytes", x.bytes);
  v("nonce", x.nonce);
  v("ms", x.ms);
  v("flag", x.flag);
  v("text", x.text);
  v("address", x.address);
  v("why", x.why);
  v("maybe", x.maybe);
  v("links", x.links);
  v("map", x.map);
  v("pair", x.pair);
  v("env", x.env);
}

struct BadRow {
  std::string_view name;
  std::string_view text;
  std::string_view message;
};

const std::vector<BadRow> kBad = {
    {"no object", "[]", "a list where an object belongs"},
    {"a port too large", R"({"port":65536})", "65536 is out of range (at most 65535) (port)"},
    {"a port below zero", R"({"port":-1})", "-1 is out of range (0 to 65535) (port)"},
    {"a port with a fraction", R"({"port":1.5})", "1.5 is no whole number (port)"},
    {"a port as text", R"({"port":"1"})", "a string where a number belongs (port)"},
    {"an int too large", R"({"maybe":2147483648})",
     "2147483648 is out of range (at most 2147483647) (maybe)"},
    {"an int too small", R"({"maybe":-2147483649})",
     "-2147483649 is out of range (-2147483648 to 2147483647) (maybe)"},
    {"64 bits too large", R"({"bytes":9223372036854775808})",
     "9223372036854775808 is out of range (at most 9223372036854775807) (bytes)"},
    {"a boolean as number", R"({"flag":1})", "a number where a boolean belongs (flag)"},
    {"null for a text", R"({"text":null})", "null where a string belongs (text)"},
    {"a number as text", R"({"ms":"1"})", "a string where a number belongs (ms)"},
    {"no address", R"({"address":"node0"})", "'node0' is no address (address)"},
    {"an enum nobody knows", R"({"why":"fine"})",
     "'fine' is none of the known names (not_collected ... failed) (why)"},
    {"deep inside", R"({"links":[{"name":"lo"},{"name":"eth0","mtu":1e3}]})",
     "1000 is no whole number (links[1].mtu)"},
    {"in a map", R"({"map":{"a":"x","b":3}})", "a number where a string belongs (map.b)"},
    {"a pair of three", R"({"pair":["a",1,2]})", "two items are expected here (pair)"},
    {"an unknown of no known kind", R"({"map":{"a":{"unknown":{"kind":"lost"}}}})",
     "'lost' is none of the known names (not_collected ... failed) (map.a.unknown.kind)"},
    {"control characters in a name", "{\"map\":{\"a\\u001b[2J\":3}}",
     "a number where a string belongs (map.a\\x1b[2J)"},
};

}  // namespace

TEST_CASE("read: what it refuses, with the place") {
  for (const BadRow& row : kBad) {
    CAPTURE(row.name);
    Everything x;
    const auto result = read_json(row.text, x, "read a test");
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().render() == "read a test: " + std::string(row.message));
  }
}

TEST_CASE("read: an absent key leaves its member, null empties an optional, strangers pass") {
  Everything x;
  REQUIRE(read_json(R"({"stranger":[1,{}],"maybe":null})", x, "read").has_value());
  Everything expected;
  expected.maybe.reset();
  CHECK(x == expected);
}

TEST_CASE("read: what was written reads back the same") {
  Everything x;
  x.port = 65535;
  x.bytes = std::numeric_limits<std::int64_t>::min();
  x.nonce = std::numeric_limits<std::uint64_t>::max();
  x.ms = 0.1;
  x.flag = true;
  x.text = "quote \" line \n";
  x.address = Address::parse("fe80::1%eth0").value();
  x.why = Why::failed;
  x.maybe.reset();
  x.links = {{.name = "eth0", .mtu = 9000, .speed_mbps = 100}};
  x.map = {{"known", std::string("v")}, {"not", Unknown{Why::denied, "EACCES"}}};
  x.pair = {"a", -1};
  // A variable of that very name must not pass for the reason of an unknown fact.
  x.env = std::map<std::string, std::string>{{"unknown", "1"}};
  Everything back;
  REQUIRE(read_json(write_json(x), back, "read").has_value());
  CHECK(back == x);
}

TEST_CASE("read: what an older version did not know is unknown") {
  Everything back;
  REQUIRE(read_json(R"({"env":null})", back, "read").has_value());
  CHECK_FALSE(back.env.known());
}

TEST_CASE("write: shapes") {
  CHECK(write_json(std::optional<int>()) == "null");
  CHECK(write_json(Observed<int>(3)) == "3");
  CHECK(write_json(Observed<int>(Unknown{Why::denied, "no"})) ==
        R"({"unknown":{"kind":"denied","text":"no"}})");
  CHECK(write_json(std::numeric_limits<double>::infinity()) == "null");
  CHECK(write_json(std::vector<std::pair<std::string, int>>{{"a", 1}, {"b", 2}}) ==
        R"([["a",1],["b",2]])");
}
