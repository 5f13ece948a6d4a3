#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// mlx5_1 of node1 is a 25 GbE port.
void management(World& w) {
  give_infiniband(w);
  change_hca(w, 1, "mlx5_1", [](RdmaDevice&, RdmaPort& port) {
    port.layer = RdmaLayer::ethernet;
    port.rate_gbps = 25;
  });
}

// And mlx5_2 of node1 is a 200 Gb/s Ethernet port.
void storage(World& w) {
  give_infiniband(w);
  change_rdma(w, 1, [](Rdma& rdma) {
    rdma.devices.push_back(rdma.devices[1]);
    rdma.devices[2].name = "mlx5_2";
    rdma.devices[2].ports[0].layer = RdmaLayer::ethernet;
    rdma.devices[2].ports[0].rate_gbps = 200;
  });
}

const Verdict kStorage = {
    .code = "rdma-hca-management",
    .severity = notice,
    .certainty = possible,
    .symptom = Symptom::slow,
    .says = "NCCL takes mlx5_2:1 of node1 too, which is of another kind than most of its ports",
    .blamed = {"node1"},
    .evidence = {"node1 rdma.mlx5_2:1.link_layer: 200 Gb/s RoCE, not InfiniBand, as most ports; "
                 "cat /sys/class/infiniband/mlx5_2/ports/1/link_layer"},
    .fixes = {"node1: NCCL_IB_HCA=^=mlx5_2:1"}};
const Verdict kSlow = {.code = "rdma-hca-management",
                       .severity = notice,
                       .certainty = possible,
                       .symptom = Symptom::slow,
                       .says = "NCCL takes mlx5_1:1 of node1 too, which is far slower",
                       .blamed = {"node1"},
                       .evidence = {"node1 rdma.mlx5_1:1.rate: 25 Gb/s RoCE, not as fast as the "
                                    "others; cat /sys/class/infiniband/mlx5_1/ports/1/rate"},
                       .fixes = {"node1: NCCL_IB_HCA=^=mlx5_1:1"}};

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: equally fast", give_infiniband},
    {"a management port beside the fast one", management, {kSlow}},
    {"near miss: NCCL_IB_HCA leaves it out",
     [](World& w) {
       management(w);
       set_and_predict(w, "NCCL_IB_HCA", "=mlx5_0");
     },
     {},
     {},
     "NCCL_IB_HCA says which ports are meant"},
    {"near miss: NCCL_IB_HCA names it, so it is meant",
     [](World& w) {
       management(w);
       set_and_predict(w, "NCCL_IB_HCA", "mlx5");
     },
     {},
     {},
     "NCCL_IB_HCA says which ports are meant"},
    {"near miss: half as fast",
     [](World& w) {
       give_infiniband(w);
       change_hca(w, 1, "mlx5_1", [](RdmaDevice&, RdmaPort& port) { port.rate_gbps = 200; });
     }},
    {"a rate that the kernel does not tell is a gap",
     [](World& w) {
       give_infiniband(w);
       change_hca(w, 1, "mlx5_1", [](RdmaDevice&, RdmaPort& port) { port.rate_gbps = {}; });
     },
     {},
     {"node1 rdma.mlx5_1:1.rate"}},
    {"RoCE beside InfiniBand, half as fast: storage", storage, {kStorage}},
    {"the other way round",
     [](World& w) {
       storage(w);
       change_rdma(w, 1, [](Rdma& rdma) {
         for (RdmaDevice& device : rdma.devices) {
           RdmaLayer& layer = device.ports[0].layer;
           layer = layer == RdmaLayer::ethernet ? RdmaLayer::infiniband : RdmaLayer::ethernet;
         }
       });
     },
     {[] {
       Verdict verdict = kStorage;
       verdict.evidence = {
           "node1 rdma.mlx5_2:1.link_layer: 200 Gb/s InfiniBand, not RoCE, as most "
           "ports; cat /sys/class/infiniband/mlx5_2/ports/1/link_layer"};
       return verdict;
     }()}},
    {"near miss: RoCE beside InfiniBand, and NCCL_IB_HCA is set",
     [](World& w) {
       storage(w);
       set_and_predict(w, "NCCL_IB_HCA", "mlx5");
     },
     {},
     {},
     "NCCL_IB_HCA says which ports are meant"},
    {"near miss: as many of each kind, so neither is the odd one",
     [](World& w) {
       storage(w);
       change_rdma(w, 1, [](Rdma& rdma) { rdma.devices.erase(rdma.devices.begin()); });
     }},
    {"near miss: NCCL uses none",
     [](World& w) {
       storage(w);
       set_and_predict(w, "NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "NCCL uses no RDMA port"},
    {"near miss: one node alone",
     [](World& w) {
       management(w);
       w.cluster.nodes.erase(w.cluster.nodes.begin());
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"unseen is a gap",
     [](World& w) {
       management(w);
       w.node(1).rdma = Unknown{.kind = Why::denied, .text = "/sys: EACCES"};
     },
     {},
     {"node1 rdma"}},
};

TEST_CASE("rdma/slow_hca") {
  run_cases("rdma/slow_hca", cases);
}

}  // namespace
}  // namespace distdoctor::testing
