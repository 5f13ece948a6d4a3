#include <distdoctor/address.h>

#include <doctest/doctest.h>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;  // NOLINT(google-build-using-namespace)

namespace {

struct Written {
  std::string_view text;
  std::string_view shown;
};
const std::vector<Written> kGood = {
    {"10.0.0.1", "10.0.0.1"},
    {"0.0.0.0", "0.0.0.0"},
    {"255.255.255.255", "255.255.255.255"},
    {"::", "::"},
    {"::1", "::1"},
    {"fe80::1%eth0", "fe80::1%eth0"},
    {"fe80::1%eth0.100", "fe80::1%eth0.100"},
    {"fe80::1%\xc3\xa9", "fe80::1%\xc3\xa9"},
    {"FD00::ABCD", "fd00::abcd"},
    {"2001:0db8:0000:0000:0001:0000:0000:0001", "2001:db8::1:0:0:1"},
    {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},  // one zero group is not shortened
    {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},                 // the longest run
    {"1::", "1::"},
    {"::ffff:10.0.0.1", "::ffff:10.0.0.1"},
    {"64:ff9b::10.0.0.1", "64:ff9b::a00:1"},
    {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
};
const std::vector<std::string_view> kBad = {
    "",
    "10.0.0",
    "10.0.0.1.2",
    "10.0.0.256",
    "010.0.0.1",
    "10.0.0.1 ",
    " 10.0.0.1",
    "10..0.1",
    "10.0.0.",
    ".10.0.0",
    "10.0.0.-1",
    "10.0.0.+1",
    "0x0a.0.0.1",
    "node0",
    "10.0.0.1:29500",
    "[::1]",
    ":::",
    ":",
    "1:2",
    "1::2::3",
    "12345::",
    "g::",
    "1:2:3:4:5:6:7:8:9",
    "::1%",
    "fe80::1%a/b",
    "fe80::1%a:b",
    "fe80::1%a b",
    "fe80::1%a\n",
    "fe80::1%..",
    "fe80::1%sixteen-letters-",
    "1:2:3:4:5:6:7:8::",
    ":1::",
    "1::2:",
    "::10.0.0",
    "::10.0.0.1:1",
    "10.0.0.1%eth0",
};

// What the C library makes of it; a zone is nothing to inet_pton.
bool libc_takes(const std::string& text, std::array<std::uint8_t, 16>& bytes) {
  bytes = {};
  if (text.find(':') == std::string::npos) return inet_pton(AF_INET, text.c_str(), &bytes) == 1;
  return inet_pton(AF_INET6, text.c_str(), &bytes) == 1;
}

}  // namespace

TEST_CASE("Address: written and read") {
  for (const Written& row : kGood) {
    CAPTURE(row.text);
    const auto address = Address::parse(row.text);
    REQUIRE(address.has_value());
    CHECK(address->text() == row.shown);
    CHECK(Address::parse(address->text()) == address);
  }
  for (const std::string_view text : kBad) {
    CAPTURE(text);
    CHECK_FALSE(Address::parse(text).has_value());
  }
}

TEST_CASE("Address: reads what inet_pton reads, and nothing else") {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same texts each time
  constexpr std::string_view kLetters = "0123456789abf::::....";
  int taken = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text(1 + random() % 18, ' ');
    for (char& c : text) c = kLetters.at(random() % kLetters.size());
    std::array<std::uint8_t, 16> bytes{};
    const bool takes = libc_takes(text, bytes);
    const auto address = Address::parse(text);
    CAPTURE(text);
    REQUIRE(address.has_value() == takes);
    if (!address) continue;
    ++taken;
    REQUIRE(address->bytes == bytes);
    REQUIRE(Address::parse(address->text()) == address);
  }
  CHECK(taken > 100);
}

TEST_CASE("Address: kinds") {
  const auto is = [](std::string_view text) { return Address::parse(text).value(); };
  CHECK(is("127.0.1.1").loopback());
  CHECK(is("::1").loopback());
  CHECK_FALSE(is("::2").loopback());
  CHECK_FALSE(is("128.0.0.1").loopback());
  CHECK_FALSE(is("::").loopback());
  CHECK(is("0.0.0.0").unspecified());
  CHECK(is("::").unspecified());
  CHECK_FALSE(is("::1").unspecified());
  CHECK(is("169.254.1.1").link_local());
  CHECK(is("febf::1%x").link_local());
  CHECK_FALSE(is("fec0::1").link_local());
  CHECK_FALSE(is("169.253.1.1").link_local());
}

TEST_CASE("Address: shares_prefix") {
  struct Row {
    std::string_view one;
    std::string_view other;
    int length;
    bool shared;
  };
  for (const Row& row :
       {Row{"10.0.0.1", "10.0.0.254", 24, true}, Row{"10.0.0.1", "10.0.1.1", 24, false},
        Row{"10.0.0.1", "10.0.1.1", 23, true}, Row{"10.0.0.1", "10.0.0.1", 32, true},
        Row{"10.0.0.1", "10.0.0.2", 32, false}, Row{"10.0.0.1", "192.168.0.1", 0, true},
        Row{"fd00::1", "fd00::2", 64, true}, Row{"fd00::1", "fd00::2", 128, false},
        Row{"::", "0.0.0.0", 0, false}, Row{"10.0.0.1", "10.0.0.1", 33, false},
        Row{"10.0.0.1", "10.0.0.1", -1, false}}) {
    CAPTURE(row.one);
    CAPTURE(row.length);
    CHECK(Address::parse(row.one)->shares_prefix(*Address::parse(row.other), row.length) ==
          row.shared);
  }
}
