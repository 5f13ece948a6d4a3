#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void set_state(World& w, const std::string& name, const std::string& state, const char* physical) {
  change_hca(w, 1, name, [&](RdmaDevice&, RdmaPort& port) {
    port.state = state;
    port.physical = physical;
  });
}
void polling(World& w) {
  give_infiniband(w);
  set_state(w, "mlx5_1", "DOWN", "Polling");
}
void init(World& w) {
  give_infiniband(w);
  set_state(w, "mlx5_1", "INIT", "LinkUp");
  change_hca(w, 1, "mlx5_1", [](RdmaDevice&, RdmaPort& port) { port.sm_lid = 0; });
}

const std::string kFile = "/sys/class/infiniband/mlx5_1/ports/1/";

Verdict down(const std::string& state, const std::string& says, const std::string& fix) {
  return {.code = "rdma-port-down",
          .severity = degraded,
          .certainty = likely,
          .symptom = Symptom::slow,
          .says = "port mlx5_1:1 of node1 is " + state + says,
          .blamed = {"node1"},
          .evidence = {"node1 rdma.mlx5_1:1.state: " + state + ", not ACTIVE; cat " + kFile +
                       "state; ibstat mlx5_1"},
          .fixes = {"node1: " + fix}};
}
const std::string kTwin = ", the same one of node0 is ACTIVE";

Verdict waiting(const std::string& state) {
  Verdict verdict = down(state, kTwin, "(manual)");
  verdict.code = "rdma-port-init";
  verdict.evidence.push_back(
      "node1 rdma.mlx5_1:1.sm_lid: 0: no subnet manager was here, not the address of one; cat " +
      kFile + "sm_lid");
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: all active", give_infiniband},
    {"no link", polling, {down("DOWN, Polling", kTwin, "(manual)")}},
    {"no subnet manager", init, {waiting("INIT, LinkUp")}},
    {"a subnet manager that does not go on",
     [](World& w) {
       give_infiniband(w);
       set_state(w, "mlx5_1", "ARMED", "LinkUp");
     },
     {[] {
       Verdict verdict = down("ARMED, LinkUp", kTwin, "(manual)");
       verdict.code = "rdma-port-init";
       return verdict;
     }()}},
    {"a RoCE port that is switched off",
     [](World& w) {
       give_roce(w);
       set_state(w, "mlx5_1", "DOWN", "Disabled");
       w.change_link(1, "eth1", [](Link& link) { link.rdma_device = "mlx5_1"; });
     },
     {down("DOWN, Disabled", kTwin, "ip link set dev eth1 up")}},
    {"named by NCCL_IB_HCA, down on all nodes",
     [](World& w) {
       give_infiniband(w);
       w.cluster.nodes.resize(2);
       w.cluster.predicted.nodes.resize(2);
       for (const std::size_t i : {0U, 1U}) {
         change_hca(w, i, "mlx5_1", [&](RdmaDevice&, RdmaPort& port) {
           port.state = i == 1 ? "DOWN" : "ACTIVE";
           port.physical = "Polling";
         });
       }
       change_rdma(w, 0, [](Rdma& rdma) { rdma.devices.resize(1); });
       set_and_predict(w, "NCCL_IB_HCA", "=mlx5_0,mlx5_1:1");
     },
     {[] {
       Verdict verdict = down("DOWN, Polling", ", though NCCL_IB_HCA names it", "(manual)");
       verdict.certainty = proved;
       return verdict;
     }()}},
    {"the only ports of the node: its ranks do not meet the others",
     [](World& w) {
       polling(w);
       change_rdma(w, 1, [](Rdma& rdma) { rdma.devices.erase(rdma.devices.begin()); });
     },
     {[] {
       Verdict verdict = down("DOWN, Polling", kTwin, "(manual)");
       verdict.severity = blocker;
       verdict.symptom = Symptom::hang;
       return verdict;
     }()}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       polling(w);
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {[] {
       Verdict verdict = down("DOWN, Polling", kTwin, "(manual)");
       verdict.severity = notice;
       return verdict;
     }()}},
    {"near miss: nobody uses that port",
     [](World& w) {
       give_infiniband(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         change_hca(w, i, "mlx5_1", [](RdmaDevice&, RdmaPort& port) { port.state = "DOWN"; });
       }
     }},
    {"near miss: the others' port of that name is of another kind",
     [](World& w) {
       polling(w);
       change_hca(w, 1, "mlx5_1",
                  [](RdmaDevice&, RdmaPort& port) { port.layer = RdmaLayer::ethernet; });
     }},
    {"near miss: NCCL_IB_HCA leaves it out",
     [](World& w) {
       polling(w);
       set_and_predict(w, "NCCL_IB_HCA", "=mlx5_0");
     }},
    {"near miss: NCCL_IB_HCA excludes it",
     [](World& w) {
       polling(w);
       set_and_predict(w, "NCCL_IB_HCA", "^mlx5_1");
     }},
    {"near miss: Gloo",
     [](World& w) {
       polling(w);
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"unseen is a gap",
     [](World& w) {
       polling(w);
       w.node(1).rdma = Unknown{.kind = Why::timed_out, .text = "the collector took too long"};
     },
     {},
     {"node1 rdma"}},
};

TEST_CASE("rdma/port_state") {
  run_cases("rdma/port_state", cases);
}

}  // namespace
}  // namespace distdoctor::testing
