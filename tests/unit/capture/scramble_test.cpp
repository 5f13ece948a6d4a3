#include "capture/scramble.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::capture;  // NOLINT(google-build-using-namespace)

namespace {

Address addr(std::string_view text) {
  return Address::parse(text).value();
}

int shared_bits(const Address& a, const Address& b) {
  int length = 0;
  while (length < a.bits() && a.shares_prefix(b, length + 1)) ++length;
  return length;
}

}  // namespace

TEST_CASE("addresses share as many bits as before, and keep their kind") {
  const Scrambler scrambler("river");
  const std::vector<std::string_view> all = {
      "10.0.0.1",    "10.0.0.2",    "10.0.1.1",    "10.200.3.4",  "172.17.0.2", "192.168.7.9",
      "203.0.113.5", "fd00::1",     "fd00::2:1",   "2001:db8::1", "fe80::1",    "fe80::2",
      "169.254.1.1", "100.64.0.9",  "172.217.0.1", "172.32.0.1",  "192.0.2.1",  "192.169.0.1",
      "100.128.0.1", "169.253.9.9", "fec0::1",     "2606::1",     "2606::2"};
  for (const auto a : all) {
    CAPTURE(a);
    const auto other = scrambler.address(addr(a));
    CHECK(other != addr(a));
    CHECK(other.v6 == addr(a).v6);
    CHECK(other.link_local() == addr(a).link_local());
    for (const auto b : all) {
      if (addr(a).v6 != addr(b).v6) continue;
      CHECK(shared_bits(other, scrambler.address(addr(b))) == shared_bits(addr(a), addr(b)));
    }
  }
  CHECK(scrambler.address(addr("10.0.0.1")).shares_prefix(addr("10.0.0.0"), 8));
  CHECK(scrambler.address(addr("192.168.7.9")).shares_prefix(addr("192.168.0.0"), 16));
}

TEST_CASE("what is nobody's own stays") {
  const Scrambler scrambler("river");
  for (const char* text :
       {"0.0.0.0", "127.0.0.1", "255.255.255.0", "224.0.0.1", "::", "::1", "ff02::1"}) {
    CAPTURE(text);
    CHECK(scrambler.address(addr(text)) == addr(text));
  }
  CHECK(scrambler.digits("00:00:00:00:00:00") == "00:00:00:00:00:00");
  CHECK(scrambler.digits("ff:ff:ff:ff:ff:ff") == "ff:ff:ff:ff:ff:ff");
}

TEST_CASE("an IPv4 address inside of an IPv6 one is the same one") {
  const Scrambler scrambler("river");
  const auto inner = scrambler.address(addr("10.0.0.1"));
  CHECK(scrambler.address(addr("::ffff:10.0.0.1")) == addr("::ffff:" + inner.text()));
}

TEST_CASE("the word decides") {
  CHECK(Scrambler("a").address(addr("10.1.2.3")) == Scrambler("a").address(addr("10.1.2.3")));
  CHECK(Scrambler("a").address(addr("10.1.2.3")) != Scrambler("b").address(addr("10.1.2.3")));
  CHECK(Scrambler("a").name('h', "node0") == Scrambler("a").name('h', "node0"));
  CHECK(Scrambler("a").name('h', "node0") != Scrambler("a").name('h', "node1"));
  CHECK(Scrambler("a").name('h', "node0") != Scrambler("b").name('h', "node0"));
}

TEST_CASE("hardware addresses keep their two low bits, whatever the letters' case") {
  const Scrambler scrambler("river");
  const auto other = scrambler.digits("02:42:ac:11:00:02");
  CHECK(other.size() == 17);
  CHECK(other != "02:42:ac:11:00:02");
  CHECK((std::stoi(other.substr(0, 2), nullptr, 16) & 3) == 2);
  CHECK(scrambler.digits("02:42:AC:11:00:02") == other);
}

TEST_CASE("what lies beside a private range is not moved into it") {
  for (const char* word : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    const Scrambler scrambler(word);
    for (const char* text : {"172.32.0.1", "172.15.0.1", "172.217.4.4"}) {
      CAPTURE(text);
      CHECK_FALSE(scrambler.address(addr(text)).shares_prefix(addr("172.16.0.0"), 12));
    }
    CHECK_FALSE(scrambler.address(addr("192.0.2.1")).shares_prefix(addr("192.168.0.0"), 16));
  }
}

TEST_CASE("digits that begin alike begin alike afterwards, and no two become one") {
  const Scrambler scrambler("river");
  const auto whole = scrambler.digits("9f2c1a77-5b6c-4a0e-9d7e-0123456789ab");
  CHECK(whole.starts_with(scrambler.digits("9f2c1a77")));
  CHECK(scrambler.digits("b8:ce:f6:12:34:56").substr(0, 16) ==
        scrambler.digits("b8:ce:f6:12:34:57").substr(0, 16));
  CHECK(scrambler.digits("b8:ce:f6:12:34:56") != scrambler.digits("b8:ce:f6:12:34:57"));
}
