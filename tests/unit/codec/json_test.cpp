#include "codec/json.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::codec;  // NOLINT(google-build-using-namespace): a test of it

namespace {

constexpr std::size_t kLimit = 1000;

struct BadRow {
  std::string_view name;
  std::string text;
  std::string_view message;  // what the line ends in
};

const std::vector<BadRow> kBad = {
    {"empty", "", "this is no JSON text (byte 1)"},
    {"cut off", R"({"a":)", "this is no JSON text (byte 6)"},
    {"something behind it", "1 2", "this is no JSON text (byte 3)"},
    {"broken UTF-8", "\"a\xff\"", "this is no JSON text (byte 3)"},
    {"a bare control character", "\"a\nb\"", "this is no JSON text (byte 3)"},
    {"a comment", "/* */ 1", "this is no JSON text (byte 1)"},
    {"a huge number", "1e999", "a number is too large for any type"},
    {"deep", std::string(33, '[') + std::string(33, ']'), "nested deeper than 32 levels"},
    {"deep and never closed", std::string(900, '['), "nested deeper than 32 levels"},
    {"long", std::string(1001, ' '), "1001 bytes, more than 1000"},
};

}  // namespace

TEST_CASE("Document::parse: what it refuses, in one line with the place") {
  for (const BadRow& row : kBad) {
    CAPTURE(row.name);
    const auto document = Document::parse(row.text, kLimit);
    REQUIRE_FALSE(document.has_value());
    CHECK(document.error().render() == "read JSON: " + std::string(row.message));
  }
}

TEST_CASE("Document::parse: the deepest it takes, and brackets inside strings") {
  CHECK(Document::parse(std::string(32, '[') + std::string(32, ']'), kLimit).has_value());
  CHECK(Document::parse(R"(["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[["])", kLimit).has_value());
}

TEST_CASE("Value: kinds and members") {
  const auto document = Document::parse(R"({"b":[1,-2,0.5,null,true,"x"],"a":{}})", kLimit).value();
  const Value root = document.root();
  CHECK(root.kind() == Kind::object);
  CHECK(root.size() == 2);
  CHECK_FALSE(root.find("c").has_value());
  const Value list = root.find("b").value();
  CHECK(list.at(0).kind() == Kind::natural);
  CHECK(list.at(1).integer() == -2);
  CHECK(list.at(2).real() == 0.5);
  CHECK(list.at(3).kind() == Kind::null);
  CHECK(list.at(4).boolean());
  CHECK(list.at(5).string() == "x");
  CHECK_FALSE(list.find("b").has_value());
}

TEST_CASE("quoted: every string becomes one JSON string") {
  struct Row {
    std::string_view name;
    std::string text;
    std::string_view json;
  };
  const std::vector<Row> rows = {
      {"plain", "eth0", R"("eth0")"},
      {"quotes and a backslash", "\"\\", R"("\"\\")"},
      {"control characters", std::string("\n\x1b\0", 3), "\"\\n\\u001b\\u0000\""},
      {"UTF-8", "\u00fc", "\"\u00fc\""},
      {"no UTF-8",
       "a\xff"
       "b",
       "\"a\ufffd"
       "b\""},
      {"a cut character", "a\xe2\x82", "\"a\ufffd\""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(quoted(row.text) == row.json);
  }
}
