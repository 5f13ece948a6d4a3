#include "collect/network.h"

#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <string_view>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

struct SpeedRow {
  std::string_view name;
  std::string_view text;
  LinkKind kind;
  std::optional<int> speed;
};
constexpr std::array<SpeedRow, 7> kSpeeds = {{
    {"a card", "100000\n", LinkKind::ethernet, 100000},
    {"a bond", "50000", LinkKind::bond, 50000},
    {"the kernel does not know", "-1\n", LinkKind::ethernet, std::nullopt},
    {"a veth makes it up", "10000\n", LinkKind::veth, std::nullopt},
    {"a bridge copies it", "25000\n", LinkKind::bridge, std::nullopt},
    {"a tunnel makes it up", "10\n", LinkKind::tun, std::nullopt},
    {"unreadable", "", LinkKind::ethernet, std::nullopt},
}};

Link link(std::string name, int index, std::string mac) {
  return {
      .name = std::move(name), .index = index, .kind = LinkKind::ethernet, .mac = std::move(mac)};
}

machine::CapturedMachine two_cards() {
  machine::CapturedMachine captured;
  captured.links =
      std::vector{link("eth0", 2, "02:00:00:00:00:01"), link("eth1", 3, "02:00:00:00:00:02")};
  auto& files = captured.files;
  files["/sys/class/net/eth0/ifindex"].text = "2\n";
  files["/sys/class/net/eth0/address"].text = "02:00:00:00:00:01\n";
  files["/sys/class/net/eth0/speed"].text = "1000\n";
  files["/sys/class/net/eth1/ifindex"].text = "3\n";
  files["/sys/class/net/eth1/address"].text = "02:00:00:00:00:02\n";
  files["/sys/class/net/eth1/speed"].text = "100000\n";
  files["/sys/class/net/eth1/carrier_down_count"].text = "3\n";
  files["/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0"].text = "eth1\n";
  return captured;
}

NodeFacts links_of(const machine::CapturedMachine& captured) {
  NodeFacts node;
  collect_links(*machine::Machine::captured(captured), {}, node);
  return node;
}

}  // namespace

TEST_CASE("link speeds: only those that some hardware has") {
  for (const auto& row : kSpeeds) {
    CAPTURE(row.name);
    CHECK(parse_speed(row.text, row.kind) == row.speed);
  }
}

TEST_CASE("links get their speed, lost carriers and RDMA device from sysfs") {
  const auto node = links_of(two_cards());
  REQUIRE(node.links.known());
  CHECK(node.links->at(0).speed_mbps == 1000);
  CHECK(node.links->at(0).rdma_device.empty());
  CHECK(node.links->at(1).speed_mbps == 100000);
  CHECK(node.links->at(1).rdma_device == "mlx5_0");
  CHECK_FALSE(node.links->at(0).carrier_downs.has_value());
  CHECK(node.links->at(1).carrier_downs == 3);
}

TEST_CASE("a sysfs of another network namespace says nothing of our links") {
  auto captured = two_cards();
  captured.files["/sys/class/net/eth0/ifindex"].text = "17\n";
  captured.files["/sys/class/net/eth1/address"].text = "02:00:00:00:00:99\n";
  const auto node = links_of(captured);
  CHECK_FALSE(node.links->at(0).speed_mbps.has_value());
  CHECK_FALSE(node.links->at(1).speed_mbps.has_value());
  CHECK(node.links->at(1).rdma_device.empty());
  CHECK_FALSE(node.links->at(1).carrier_downs.has_value());
}

TEST_CASE("the interface of an RDMA device, by each way that drivers name it") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  files["/sys/class/infiniband/mlx5_0/device/net/ib0"].link = "../ib0";
  files["/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/3"].text = "bond0\n";
  files["/sys/class/infiniband/rxe0/parent"].text = "eth0\n";
  const auto machine = machine::Machine::captured(captured);
  const std::map<std::string, std::string> expected = {
      {"bond0", "mlx5_1"}, {"eth0", "rxe0"}, {"ib0", "mlx5_0"}};
  CHECK(rdma_devices(machine->files()) == expected);
}

TEST_CASE("links that were not read are unknown, with the reason") {
  const auto node = links_of({.links = Unknown{Why::denied, "ask netlink for the links: no"}});
  CHECK(node.links.why().kind == Why::denied);
}
