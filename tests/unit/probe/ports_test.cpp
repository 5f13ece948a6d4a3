#include "probe/ports.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using namespace probe;
using Ports = std::vector<std::uint16_t>;

TEST_CASE("parse_port_range") {
  struct Row {
    const char* text;
    PortRange range;
  };
  for (const auto& [text, range] :
       {Row{"32768\t60999\n", {32768, 60999}}, Row{"1024 65535", {1024, 65535}}, Row{"5 5", {5, 5}},
        Row{"", {32768, 60999}}, Row{"60999 32768", {32768, 60999}},
        Row{"0 70000", {32768, 60999}}}) {
    CAPTURE(text);
    CHECK(parse_port_range(text) == range);
  }
}

TEST_CASE("spread_ports takes both ends and even steps between") {
  CHECK(spread_ports({32768, 60999}, 8) ==
        Ports{32768, 36801, 40834, 44867, 48900, 52933, 56966, 60999});
  CHECK(spread_ports({10, 12}, 8) == Ports{10, 11, 12});
  CHECK(spread_ports({10, 10}, 2) == Ports{10});
  CHECK(spread_ports({1, 65535}, 2) == Ports{1, 65535});
  CHECK(spread_ports({10, 20}, 1) == Ports{10});
  CHECK(spread_ports({10, 20}, 0).empty());
}

TEST_CASE("outside_of") {
  CHECK(outside_of({32768, 60999}) == PortRange{1024, 32767});
  CHECK(outside_of({1024, 60999}) == PortRange{61000, 65535});
  CHECK(outside_of({1088, 65535}) == PortRange{1024, 1087});
  CHECK_FALSE(outside_of({1087, 65535}).has_value());
  CHECK_FALSE(outside_of({1024, 65472}).has_value());
}

TEST_CASE("nearest_free stays inside the range and gives up") {
  struct Row {
    const char* name;
    std::uint16_t wanted;
    std::set<std::uint16_t> taken;
    std::uint16_t got;
  };
  for (const auto& [name, wanted, taken, got] :
       {Row{"free", 15, {}, 15}, Row{"one up", 15, {15}, 16}, Row{"one down", 15, {15, 16}, 14},
        Row{"the lower end goes up", 10, {10, 11}, 12},
        Row{"the upper end goes down", 20, {20, 19}, 18},
        Row{"all taken", 15, {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 0}}) {
    CAPTURE(name);
    CHECK(nearest_free(wanted, {10, 20}, 100, [&](std::uint16_t port) {
            CHECK((port >= 10 && port <= 20));
            return !taken.contains(port);
          }) == got);
  }
  CHECK(nearest_free(15, {10, 20}, 2, [](std::uint16_t port) { return port == 14; }) == 0);
}

}  // namespace
}  // namespace distdoctor::testing
