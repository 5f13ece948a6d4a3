#include "collect/rdma.h"

#include "collect/collectors.h"
#include "support/rdma_machines.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

Rdma collected(const machine::CapturedMachine& captured) {
  NodeFacts node;
  collect_rdma(*machine::Machine::captured(captured), {}, node);
  REQUIRE(node.rdma.known());
  return *node.rdma;
}

}  // namespace

TEST_CASE("words of a port") {
  CHECK(parse_port_state("4: ACTIVE") == "ACTIVE");
  CHECK(parse_port_state("5: LinkUp") == "LinkUp");
  CHECK(parse_port_state("") == "");
  CHECK(parse_rdma_layer("InfiniBand") == RdmaLayer::infiniband);
  CHECK(parse_rdma_layer("Ethernet") == RdmaLayer::ethernet);
  CHECK(parse_rdma_layer("Unspecified") == RdmaLayer::other);
  CHECK(parse_rdma_rate("400 Gb/sec (4X NDR)") == 400);
  CHECK(parse_rdma_rate("2.5 Gb/sec (1X SDR)") == 2.5);
  for (const char* none : {"", "400", "400 GB/sec", "x Gb/sec", "-1 Gb/sec", "0 Gb/sec"}) {
    CAPTURE(none);
    CHECK_FALSE(parse_rdma_rate(none).has_value());
  }
  CHECK(parse_lid("0x1c") == 28);
  CHECK(parse_lid("28") == 0);
  CHECK(parse_lid("0x12345") == 0);
  CHECK(parse_gid("0000:0000:0000:0000:0000:0000:0000:0000").empty());
  CHECK(parse_gid("fe80:0000:0000:0000:0000:0000:0000:0001") ==
        "fe80:0000:0000:0000:0000:0000:0000:0001");
}

TEST_CASE("providers by the names of their files") {
  CHECK(provider_of_file("libmlx5-rdmav34.so") == "mlx5");
  CHECK(provider_of_file("mlx5.driver") == "mlx5");
  for (const char* none : {"libmlx5.so.1", "lib-rdmav34.so", "README", ""}) {
    CAPTURE(none);
    CHECK(provider_of_file(none).empty());
  }
}

TEST_CASE("a machine without RDMA: an answer") {
  CHECK(collected({}) == Rdma{});
}

TEST_CASE("eight HCAs of an H100 node and its storage ports") {
  const Rdma rdma = collected(h100_with_infiniband());
  REQUIRE(rdma.devices.size() == 10);
  CHECK(rdma.namespace_mode == "shared");
  CHECK(rdma.libibverbs == "/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0");
  CHECK(rdma.providers == std::vector<std::string>{"mlx5"});
  const RdmaDevice expected{.name = "mlx5_0",
                            .driver = "mlx5_core",
                            .pci = "0000:18:00.0",
                            .firmware = "28.39.1002",
                            .node_guid = "a088:c203:0000:0001",
                            .system_guid = "a088:c203:0000:0001",
                            .numa = 0,
                            .uverbs = "/dev/infiniband/uverbs0",
                            .uverbs_there = true,
                            .uverbs_usable = true,
                            .ports = {{.number = 1,
                                       .state = "ACTIVE",
                                       .physical = "LinkUp",
                                       .layer = RdmaLayer::infiniband,
                                       .rate_gbps = 400,
                                       .lid = 28,
                                       .sm_lid = 1,
                                       .gids = {{.index = 0,
                                                 .gid = "fe80:0000:0000:0000:a088:c203:0000:0001",
                                                 .type = "IB/RoCE v1"}},
                                       .pkeys = {{.index = 0, .key = 0xffff}},
                                       .counters = {{"link_downed", 0}}}}};
  CHECK(rdma.devices[0] == expected);
  const RdmaPort& storage = rdma.devices[1].ports.at(0);
  CHECK(rdma.devices[1].name == "mlx5_1");
  CHECK(storage.state == "DOWN");
  CHECK(storage.physical == "Disabled");
  CHECK(storage.layer == RdmaLayer::ethernet);
}

TEST_CASE("GIDs of RoCE with their types and netdevs") {
  const Rdma rdma = collected(a100_with_roce(6));
  const auto& gids = rdma.devices.at(2).ports.at(0).gids;
  REQUIRE(gids.size() == 4);
  CHECK(gids[3] == Gid{.index = 3,
                       .gid = "0000:0000:0000:0000:0000:ffff:c0a8:0206",
                       .type = "RoCE v2",
                       .netdev = "rdma2"});
}

TEST_CASE("Soft-RoCE has no PCI device") {
  const RdmaDevice device = collected(vm_with_soft_roce(1)).devices.at(0);
  CHECK(device.driver == "rdma_rxe");
  CHECK(device.pci.empty());
  CHECK(device.numa == -1);
  CHECK(device.ports.at(0).rate_gbps == 2.5);
}

TEST_CASE("EFA has a link layer of its own") {
  const RdmaDevice device = collected(vm_with_efa()).devices.at(0);
  CHECK(device.driver == "efa");
  CHECK(device.ports.at(0).layer == RdmaLayer::other);
}

TEST_CASE("device nodes: not there, refused by a device cgroup") {
  const RdmaDevice absent = collected(container_without_devices()).devices.at(0);
  CHECK(absent.uverbs == "/dev/infiniband/uverbs0");
  CHECK_FALSE(absent.uverbs_there);
  CHECK_FALSE(absent.uverbs_usable);
  auto captured = h100_with_infiniband();
  captured.files["/dev/infiniband/uverbs0"].error = EPERM;
  const RdmaDevice refused = collected(captured).devices.at(0);
  CHECK(refused.uverbs_there);
  CHECK_FALSE(refused.uverbs_usable);
}
