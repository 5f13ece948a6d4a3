// Texts of a real kernel (6.1), shortened by what is not read.
#include "collect/bonding.h"

#include <distdoctor/bonds.h>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::string_view kHead =
    "Ethernet Channel Bonding Driver: v6.1.0-57-amd64\n\n"
    "Bonding Mode: fault-tolerance (active-backup) (fail_over_mac active)\n"
    "Primary Slave: None\n"
    "Currently Active Slave: eth2\n"
    "MII Status: up\n"
    "MII Polling Interval (ms): 100\n"
    "Peer Notification Delay (ms): 0\n";
constexpr std::string_view kDown =
    "\nSlave Interface: eth1\n"
    "MII Status: down\n"
    "Speed: Unknown\n"
    "Duplex: Unknown\n"
    "Link Failure Count: 3\n"
    "Permanent HW addr: 4e:b5:3d:6a:31:c0\n"
    "Slave queue ID: 0\n";
constexpr std::string_view kUp =
    "\nSlave Interface: eth2\n"
    "MII Status: up\n"
    "Speed: 100000 Mbps\n"
    "Duplex: full\n"
    "Link Failure Count: 0\n"
    "Permanent HW addr: 82:f3:b0:8c:df:07\n"
    "Slave queue ID: 0\n";
constexpr std::string_view kLacpHead =
    "Bonding Mode: IEEE 802.3ad Dynamic link aggregation\n"
    "Transmit Hash Policy: layer3+4 (1)\n"
    "MII Status: up\n\n"
    "802.3ad info\n"
    "LACP active: on\n"
    "Aggregator selection policy (ad_select): stable\n";
constexpr std::string_view kLacpActive =  // for root only
    "System priority: 65535\n"
    "Active Aggregator Info:\n"
    "\tAggregator ID: 2\n"
    "\tNumber of ports: 1\n"
    "\tPartner Mac Address: 00:00:00:00:00:00\n";

std::string lacp_member(const std::string& name, int aggregator) {
  return "\nSlave Interface: " + name +
         "\nMII Status: up\nSpeed: 25000 Mbps\nLink Failure Count: 0\nAggregator ID: " +
         std::to_string(aggregator) +
         "\nActor Churn State: monitoring\ndetails actor lacp pdu:\n    system priority: 65535\n"
         "    port key: 15\n    port state: 77\ndetails partner lacp pdu:\n    oper key: 1\n";
}
std::string lacp(std::string_view active) {
  return std::string(kLacpHead) + std::string(active) + lacp_member("eth1", 1) +
         lacp_member("eth2", 2);
}
std::string text(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const auto part : parts) all += part;
  return all;
}

struct ModeRow {
  std::string_view words;
  std::string_view mode;
};
constexpr std::array<ModeRow, 8> kModes = {{
    {"load balancing (round-robin)", "balance-rr"},
    {"fault-tolerance (active-backup)", "active-backup"},
    {"load balancing (xor)", "balance-xor"},
    {"fault-tolerance (broadcast)", "broadcast"},
    {"IEEE 802.3ad Dynamic link aggregation", "802.3ad"},
    {"transmit load balancing", "balance-tlb"},
    {"adaptive load balancing", "balance-alb"},
    {"something that is new", "something that is new"},
}};

BondMember member(std::string name, int speed, int aggregator = 0) {
  return {.name = std::move(name), .up = true, .speed_mbps = speed, .aggregator = aggregator};
}

}  // namespace

TEST_CASE("bond modes, in the kernel's words") {
  for (const auto& row : kModes) {
    CAPTURE(row.words);
    CHECK(bond_mode(row.words) == row.mode);
  }
}

TEST_CASE("active-backup: the mode without its options, and a member that is down") {
  const auto bond = parse_bond(text({kHead, kDown, kUp}));
  REQUIRE(bond.has_value());
  CHECK(*bond == Bond{.mode = "active-backup",
                      .active = "eth2",
                      .members = {{.name = "eth1", .failures = 3}, member("eth2", 100'000)}});
}

TEST_CASE("802.3ad: aggregators, as root sees them and as others do") {
  const auto root = parse_bond(lacp(kLacpActive));
  REQUIRE(root.has_value());
  CHECK(*root == Bond{.mode = "802.3ad",
                      .hash_policy = "layer3+4",
                      .aggregator = 2,
                      .members = {member("eth1", 25'000, 1), member("eth2", 25'000, 2)}});
  const auto user = parse_bond(lacp(""));
  REQUIRE(user.has_value());
  CHECK(user->aggregator == 0);
  CHECK(user->members == root->members);
}

TEST_CASE("a bond without members, and what is none") {
  const auto empty = parse_bond(
      "Bonding Mode: fault-tolerance (active-backup)\nCurrently Active Slave: None\nMII Status: "
      "down\n");
  REQUIRE(empty.has_value());
  CHECK(*empty == Bond{.mode = "active-backup"});
  for (const std::string_view none : {"", "\n", "Bonding Mode:\n", "Bonding Mode", "\xff\xfe: x\n",
                                      "Slave Interface: eth0\nBonding Mode: x\n"}) {
    CHECK_FALSE(parse_bond(none).has_value());
  }
}

TEST_CASE("numbers that are none are unknown, and members have an end") {
  std::string many = "Bonding Mode: load balancing (xor)\n";
  many += "Slave Interface: a\nSpeed: -1 Mbps\nLink Failure Count: x\nAggregator ID: N/A\n";
  for (int i = 0; i < 1000; ++i) many += "Slave Interface: b\n";
  const auto bond = parse_bond(many);
  REQUIRE(bond.has_value());
  CHECK(bond->members.front() == BondMember{.name = "a"});
  CHECK(bond->members.size() == 256);
}

TEST_CASE("which members carry data") {
  const Bond lacp{.mode = "802.3ad",
                  .members = {member("a", 25'000, 1),
                              member("b", 25'000, 2),
                              member("c", 25'000, 2),
                              {.name = "d", .aggregator = 2}}};
  CHECK(carrying_aggregator(lacp) == 2);
  CHECK(members_carrying(lacp).size() == 2);
  const Bond backup{
      .mode = "active-backup", .active = "b", .members = {member("a", 1'000), member("b", 100)}};
  REQUIRE(members_carrying(backup).size() == 1);
  CHECK(members_carrying(backup).front()->name == "b");
}

TEST_CASE("what one connection can have of a link") {
  const auto of = [](std::string mode, std::vector<BondMember> members) {
    Link link{.name = "bond0", .kind = LinkKind::bond, .speed_mbps = 50'000};
    link.bond = Bond{.mode = std::move(mode), .active = "b", .members = std::move(members)};
    return one_stream_mbps(link).value_or(0);
  };
  const std::vector two = {member("a", 25'000), member("b", 10'000)};
  CHECK(of("balance-xor", two) == 10'000);
  CHECK(of("802.3ad", {member("a", 25'000, 1), member("b", 25'000, 1)}) == 25'000);
  CHECK(of("active-backup", two) == 10'000);
  CHECK(of("balance-rr", two) == 50'000);
  CHECK(of("balance-xor", {member("a", 25'000), {.name = "b", .up = true}}) == 50'000);
  CHECK(of("balance-xor", {}) == 50'000);
  CHECK(one_stream_mbps({.name = "eth0", .speed_mbps = 100}).value_or(0) == 100);
  CHECK_FALSE(one_stream_mbps({.name = "veth0"}).has_value());
}
