#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void lose_one(World& w, std::size_t node) {
  change_rdma(w, node, [](Rdma& rdma) { rdma.devices.resize(1); });
}
void lose_all(World& w, std::size_t node) {
  change_rdma(w, node, [](Rdma& rdma) { rdma.devices.clear(); });
}
void only(World& w, std::size_t nodes) {
  w.cluster.nodes.resize(nodes);
  w.cluster.predicted.nodes.resize(nodes);
}
void all_ethernet(World& w, std::size_t node) {
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    change_hca(w, node, name,
               [](RdmaDevice&, RdmaPort& port) { port.layer = RdmaLayer::ethernet; });
  }
}

const std::string kTwo = "2 x 400 Gb/s InfiniBand";
const std::string kLook = "; rdma link; printenv NCCL_IB_HCA";

Verdict differ(Severity severity, const std::string& has, const std::string& ports) {
  return {.code = "rdma-hca-sets-differ",
          .severity = severity,
          .certainty = likely,
          .symptom = severity == blocker ? Symptom::hang : Symptom::slow,
          .says = "NCCL takes " + has + " on node2, and " + kTwo + " on node0",
          .blamed = {"node2"},
          .evidence = {"node2 nccl.hcas: " + has + ports + ", not " + kTwo + kLook},
          .fixes = {"*: (manual)"}};
}

// Of two nodes, of which node1 lost a port.
Verdict neither(const std::string& ports) {
  return {.code = "rdma-hca-sets-differ",
          .severity = degraded,
          .certainty = possible,
          .symptom = Symptom::slow,
          .says = "NCCL takes 1 x 400 Gb/s InfiniBand on node1, and " + kTwo + " on node0",
          .blamed = {"node1", "node0"},
          .evidence = {"node1 nccl.hcas: 1 x 400 Gb/s InfiniBand (mlx5_0:1), not " + kTwo + kLook,
                       "node0 nccl.hcas: " + kTwo + " (" + ports +
                           "), not 1 x 400 Gb/s InfiniBand" + kLook},
          .fixes = {"*: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy: nowhere RDMA", [](World&) {}},
    {"healthy: the same everywhere", give_infiniband},
    {"healthy: other names",
     [](World& w) {
       give_infiniband(w);
       change_rdma(w, 2, [](Rdma& rdma) {
         rdma.devices[0].name = "mlx5_ib0";
         rdma.devices[1].name = "ibp24s0";
       });
     }},
    {"one port fewer",
     [](World& w) {
       give_infiniband(w);
       lose_one(w, 2);
     },
     {differ(degraded, "1 x 400 Gb/s InfiniBand", " (mlx5_0:1)")}},
    {"none on one node",
     [](World& w) {
       give_infiniband(w);
       lose_all(w, 2);
     },
     {differ(blocker, "no port", "")}},
    {"InfiniBand here, RoCE there",
     [](World& w) {
       give_infiniband(w);
       all_ethernet(w, 2);
     },
     {differ(blocker, "2 x 400 Gb/s RoCE", " (mlx5_0:1, mlx5_1:1)")}},
    {"a port at half its rate",
     [](World& w) {
       give_infiniband(w);
       change_hca(w, 2, "mlx5_1", [](RdmaDevice&, RdmaPort& port) { port.rate_gbps = 200; });
     },
     {differ(degraded,
             "1 x 200 Gb/s InfiniBand and 1 x 400 Gb/s InfiniBand",
             " (mlx5_0:1, mlx5_1:1)")}},
    {"of two nodes neither is the odd one",
     [](World& w) {
       give_infiniband(w);
       only(w, 2);
       lose_one(w, 1);
     },
     {neither("mlx5_0:1, mlx5_1:1")}},
    {"cards with two ports: what NCCL makes one device of is shown",
     [](World& w) {
       give_infiniband(w);
       only(w, 2);
       for (const std::size_t i : {0U, 1U}) {
         change_hca(w, i, "mlx5_1",
                    [](RdmaDevice& device, RdmaPort&) { device.pci = "0000:18:00.1"; });
       }
       lose_one(w, 1);
     },
     {neither("mlx5_0:1+mlx5_1:1")}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       give_infiniband(w);
       lose_one(w, 2);
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {[] {
       Verdict verdict = differ(degraded, "1 x 400 Gb/s InfiniBand", " (mlx5_0:1)");
       verdict.severity = notice;
       return verdict;
     }()}},
    {"what an ssh login may not open says little of the job: a notice",
     [](World& w) {
       give_infiniband(w);
       w.node(2).context = Context::ssh;
       change_hca(w, 2, "mlx5_1",
                  [](RdmaDevice& device, RdmaPort&) { device.uverbs_usable = false; });
     },
     {[] {
       Verdict verdict = differ(degraded, "1 x 400 Gb/s InfiniBand", " (mlx5_0:1)");
       verdict.severity = notice;
       return verdict;
     }()}},
    {"near miss: NCCL_IB_HCA takes what all have",
     [](World& w) {
       give_infiniband(w);
       lose_one(w, 2);
       set_and_predict(w, "NCCL_IB_HCA", "=mlx5_0");
     }},
    {"a rate that the kernel does not tell is a gap, and no difference",
     [](World& w) {
       give_infiniband(w);
       change_hca(w, 2, "mlx5_1", [](RdmaDevice&, RdmaPort& port) { port.rate_gbps = {}; });
     },
     {},
     {"node2 rdma.mlx5_1:1.rate"}},
    {"a state that nobody saw is a gap, and no difference",
     [](World& w) {
       give_infiniband(w);
       change_hca(w, 2, "mlx5_1", [](RdmaDevice&, RdmaPort& port) { port.state = ""; });
     },
     {},
     {"node2 rdma.mlx5_1:1.state"}},
    {"near miss: NCCL uses none",
     [](World& w) {
       give_infiniband(w);
       set_and_predict(w, "NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "NCCL uses no RDMA port"},
    {"near miss: one node alone",
     [](World& w) {
       give_infiniband(w);
       only(w, 1);
     },
     {},
     {},
     "one node alone"},
    {"near miss: Gloo",
     [](World& w) {
       give_infiniband(w);
       lose_all(w, 2);
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"unseen is a gap, and no difference",
     [](World& w) {
       give_infiniband(w);
       w.node(2).rdma = Unknown{.kind = Why::denied, .text = "/sys: EACCES"};
     },
     {},
     {"node2 rdma"}},
};

TEST_CASE("rdma/hca_sets") {
  run_cases("rdma/hca_sets", cases);
}

}  // namespace
}  // namespace distdoctor::testing
