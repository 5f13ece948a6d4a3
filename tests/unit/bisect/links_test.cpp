#include "bisect/links.h"

#include "support/simulated_cluster.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::testing {
namespace {

constexpr SimulatedShape kPcie{.nodes = 1, .gpus = 4};
constexpr SimulatedShape kSwitched{.nodes = 1, .gpus = 8, .nvswitch = true};
constexpr SimulatedShape kRdma{.nodes = 2, .gpus = 8, .nvswitch = true, .hcas = 4};
constexpr SimulatedShape kTcp{.nodes = 2, .gpus = 1};

struct Row {
  std::string_view name;
  SimulatedShape shape;
  std::function<void(ClusterFacts&)> change;
  double gb_per_s;  // 0: not known
  std::string_view limit;
  std::string_view transport = "P2P/CUMEM";
};

template <class T, class Change>
void edit(Observed<T>& fact, Change change) {
  T value = *fact;
  change(value);
  fact = value;
}

// Between all nodes by eth1, as many streams as NCCL has: alone, and beside the others.
void carry(ClusterFacts& facts, double alone, double beside) {
  facts.pairs.clear();
  for (const NodeFacts& from : facts.nodes) {
    for (const NodeFacts& to : facts.nodes) {
      if (&from == &to) continue;
      facts.pairs.push_back({.from = from.host, .to = to.host});
      facts.pairs.back().paths = {
          {.source = {},
           .destination = {},
           .interface = "eth1",
           .wire = std::vector<WireSpeed>{{1, 0.5, 0.7}, {8, alone, 0.7}, {8, beside, 0.7}}}};
    }
  }
}
void only_eth1(ClusterFacts& facts) {
  for (NodeFacts& node : facts.nodes) {
    edit(node.links, [](std::vector<Link>& links) {
      std::erase_if(links, [](const Link& link) { return link.name == "eth0"; });
    });
  }
}

const std::vector<Row> rows = {
    {"PCIe 4.0 x16 with P2P", kPcie, [](auto&) {}, 0.45 * 31.504,
     "PCIe x16 at 16 GT/s of GPU 0 on node0"},
    {"by way of shared memory", kPcie, [](auto&) {}, 0.2 * 31.504,
     "PCIe x16 at 16 GT/s of GPU 0 on node0", "SHM/direct"},
    {"the narrowest slot", kPcie,
     [](ClusterFacts& facts) {
       edit(facts.nodes[0].pci, [](Pci& pci) { pci.devices[2].width = 4; });
     },
     0.45 * 4 * 1.969, "PCIe x4 at 16 GT/s of GPU 2 on node0"},
    {"an idle GPU's speed has fallen, which says nothing", kPcie,
     [](ClusterFacts& facts) {
       edit(facts.nodes[0].pci, [](Pci& pci) { pci.devices[2].speed_gts = 2.5; });
     },
     0.45 * 31.504, "PCIe x16 at 16 GT/s of GPU 0 on node0"},
    {"a width that nobody saw", kPcie,
     [](ClusterFacts& facts) {
       edit(facts.nodes[0].pci, [](Pci& pci) { pci.devices[2].width = std::nullopt; });
     },
     0, ""},
    {"a bus that nobody saw", kPcie, [](ClusterFacts& facts) { facts.nodes[0].pci = Unknown{}; }, 0,
     ""},
    {"18 NVLinks", kSwitched, [](auto&) {}, 0.75 * 450, "18 NVLinks of GPU 0 on node0"},
    {"one GPU has lost some", kSwitched,
     [](ClusterFacts& facts) {
       edit(facts.nodes[0].nvml, [](Nvml& nvml) { nvml.gpus[5].nvlinks_active = 12; });
     },
     0.75 * 300, "12 NVLinks of GPU 5 on node0"},
    {"not all pairs have NVLink: PCIe", kSwitched,
     [](ClusterFacts& facts) {
       edit(facts.nodes[0].nvml, [](Nvml& nvml) { nvml.pairs[3].path = "SYS"; });
     },
     0.45 * 31.504, "PCIe x16 at 16 GT/s of GPU 0 on node0"},
    {"4 cards of 200 Gb/s", kRdma, [](auto&) {}, 0.85 * 100, "4 RDMA cards of 200 Gb/s on node0"},
    {"the slowest card holds up all", kRdma,
     [](ClusterFacts& facts) {
       edit(facts.nodes[1].rdma, [](Rdma& rdma) { rdma.devices[2].ports[0].rate_gbps = 100; });
     },
     0.85 * 50, "4 RDMA cards of 100 Gb/s on node1"},
    {"a rate that the kernel does not say", kRdma,
     [](ClusterFacts& facts) {
       edit(facts.nodes[1].rdma, [](Rdma& rdma) { rdma.devices[2].ports[0].rate_gbps = {}; });
     },
     0, ""},
    {"TCP by 25 Gb/s", kTcp, [](auto&) {}, 0.8 * 3.125, "eth1 of 25 Gb/s on node0", "NET/Socket/0"},
    {"a wire that was not chosen counts, too", kTcp,
     [](ClusterFacts& facts) {
       for (NodeFacts& node : facts.nodes) {
         edit(node.links, [](std::vector<Link>& links) { links[1].speed_mbps = 100'000; });
       }
     },
     0.8 * 12.5, "eth0 of 100 Gb/s on node0", "NET/Socket/0"},
    {"one connection has one link of a bond", kTcp,
     [](ClusterFacts& facts) {
       edit(facts.nodes[0].links, [](std::vector<Link>& links) {
         links[2].speed_mbps = 50'000;
         links[2].bond = Bond{.mode = "802.3ad",
                              .members = {{.name = "p0", .up = true, .speed_mbps = 10'000},
                                          {.name = "p1", .up = true, .speed_mbps = 10'000}}};
       });
     },
     0.8 * 1.25, "eth1 of 10 Gb/s on node0", "NET/Socket/0"},
    {"sockets in spite of cards",
     {.nodes = 2, .gpus = 1, .hcas = 1},
     [](auto&) {},
     0.8 * 3.125,
     "eth1 of 25 Gb/s on node0",
     "NET/Socket/0"},
    {"TCP as it was measured, in place of what the link claims", kTcp,
     [](ClusterFacts& facts) {
       only_eth1(facts);
       carry(facts, 2, 1.9);
     },
     0.8 * 1.9, "TCP from node0 to node1, measured: 1.9 GB/s", "NET/Socket/0"},
    {"slower beside the others: a processor or the switch", kTcp,
     [](ClusterFacts& facts) {
       only_eth1(facts);
       carry(facts, 2, 1.6);
     },
     0.8 * 3.125, "eth1 of 25 Gb/s on node0", "NET/Socket/0"},
    {"measured one way only", kTcp,
     [](ClusterFacts& facts) {
       only_eth1(facts);
       carry(facts, 2, 2);
       facts.pairs.pop_back();
     },
     0.8 * 3.125, "eth1 of 25 Gb/s on node0", "NET/Socket/0"},
    {"another wire claims more than was measured", kTcp,
     [](ClusterFacts& facts) { carry(facts, 0.05, 0.05); }, 0.8 * 1.25, "eth0 of 10 Gb/s on node0",
     "NET/Socket/0"},
    {"what another wire would do is not known", kTcp,
     [](ClusterFacts& facts) {
       carry(facts, 2, 2);
       edit(facts.nodes[0].links, [](std::vector<Link>& links) { links[1].speed_mbps = {}; });
     },
     0, "", "NET/Socket/0"},
    {"a speed that the kernel does not know", kTcp,
     [](ClusterFacts& facts) {
       edit(facts.nodes[0].links, [](std::vector<Link>& links) { links[2].speed_mbps = {}; });
     },
     0, "", "NET/Socket/0"},
};

TEST_CASE("what the links allow") {
  for (const Row& row : rows) {
    const std::string name(row.name);
    CAPTURE(name);
    SimulatedCluster cluster(row.shape, {});
    row.change(cluster.facts);
    const Experiment run{.ranks = {{.transports = {std::string(row.transport)}}}};
    const auto limit =
        bisect::limit_of(cluster.facts, bisect::shape_of(cluster.facts, cluster.options), run);
    CHECK(limit.has_value() == (row.gb_per_s > 0));
    if (!limit) continue;
    CHECK(limit->gb_per_s == doctest::Approx(row.gb_per_s));
    CHECK(limit->limit == row.limit);
  }
}

TEST_CASE("PCIe by width and generation") {
  CHECK(bisect::pcie_gb_per_s(16, 2.5) == 4);
  CHECK(bisect::pcie_gb_per_s(8, 8.0) == doctest::Approx(7.88));
  CHECK(bisect::pcie_gb_per_s(16, 32.0) == doctest::Approx(63.008));
  CHECK_FALSE(bisect::pcie_gb_per_s(16, 7.0));
  CHECK_FALSE(bisect::pcie_gb_per_s(std::nullopt, 8.0));
  CHECK_FALSE(bisect::pcie_gb_per_s(16, std::nullopt));
}

}  // namespace
}  // namespace distdoctor::testing
