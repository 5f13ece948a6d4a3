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
     }},
    {"near miss: NCCL_IB_HCA names it, so it is meant",
     [](World& w) {
       management(w);
       set_and_predict(w, "NCCL_IB_HCA", "mlx5");
     }},
    {"near miss: half as fast",
     [](World& w) {
       give_infiniband(w);
       change_hca(w, 1, "mlx5_1", [](RdmaDevice&, RdmaPort& port) { port.rate_gbps = 200; });
     }},
    {"near miss: a rate that the kernel does not know",
     [](World& w) {
       give_infiniband(w);
       change_hca(w, 1, "mlx5_1", [](RdmaDevice&, RdmaPort& port) { port.rate_gbps = {}; });
     }},
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
