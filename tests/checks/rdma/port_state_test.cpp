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

// node0 takes mlx5_0 and mlx5_1, node1 mlx5_1 and mlx5_2.
void numbered_otherwise(World& w) {
  give_infiniband(w);
  w.cluster.nodes.resize(2);
  w.cluster.predicted.nodes.resize(2);
  for (const std::size_t i : {0U, 1U}) {
    change_rdma(w, i, [i](Rdma& rdma) {
      rdma.devices.push_back(rdma.devices[1]);
      rdma.devices[2].name = "mlx5_2";
      RdmaPort& idle = rdma.devices[i == 0 ? 2 : 0].ports[0];
      idle.state = "DOWN";
      idle.physical = "Polling";
    });
  }
}
Verdict otherwise(const std::string& node, const std::string& port, const std::string& twin) {
  return {.code = "rdma-port-down",
          .severity = notice,
          .certainty = possible,
          .symptom = Symptom::slow,
          .says = "port " + port + ":1 of " + node + " is DOWN, Polling, the same one of " + twin +
                  " is ACTIVE; both take 2 x 400 Gb/s InfiniBand, so their ports may only be",
          .blamed = {node},
          .evidence = {node + " rdma." + port +
                       ":1.state: DOWN, Polling, not ACTIVE; cat /sys/class/infiniband/" + port +
                       "/ports/1/state; ibstat " + port},
          .fixes = {node + ": (manual)"}};
}

// On no node is any port ACTIVE, since nobody manages the fabric.
void no_manager(World& w) {
  give_infiniband(w);
  for (std::size_t i = 0; i < 4; ++i) {
    for (const char* name : {"mlx5_0", "mlx5_1"}) {
      change_hca(w, i, name, [](RdmaDevice&, RdmaPort& port) {
        port.state = "INIT";
        port.sm_lid = 0;
      });
    }
  }
}
Verdict unmanaged() {
  Verdict verdict{.code = "rdma-port-init",
                  .severity = degraded,
                  .certainty = possible,
                  .symptom = Symptom::slow,
                  .says =
                      "8 InfiniBand ports of node0, node1, node2, node3 have a link and wait "
                      "for a subnet manager",
                  .fixes = {"*: (manual)"}};
  for (const std::string node : {"node0", "node1", "node2", "node3"}) {
    const std::string port = "/sys/class/infiniband/mlx5_0/ports/1/";
    verdict.blamed.push_back(node);
    verdict.evidence.push_back(node + " rdma.mlx5_0:1.state: INIT, LinkUp, not ACTIVE; cat " +
                               port + "state; ibstat mlx5_0");
    verdict.evidence.push_back(node +
                               " rdma.mlx5_0:1.sm_lid: 0: no subnet manager was here, not the "
                               "address of one; cat " +
                               port + "sm_lid");
  }
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"other numbers, as many ports: a notice",
     numbered_otherwise,
     {otherwise("node0", "mlx5_2", "node1"), otherwise("node1", "mlx5_0", "node0")}},
    {"other numbers, and NCCL_IB_HCA names the idle ones",
     [](World& w) {
       numbered_otherwise(w);
       set_and_predict(w, "NCCL_IB_HCA", "mlx5_0,mlx5_1,mlx5_2");
     },
     {[] {
        Verdict verdict = otherwise("node0", "mlx5_2", "node1");
        verdict.severity = degraded;
        verdict.certainty = proved;
        verdict.says = "port mlx5_2:1 of node0 is DOWN, Polling, the same one of node1 is ACTIVE";
        return verdict;
      }(),
      [] {
        Verdict verdict = otherwise("node1", "mlx5_0", "node0");
        verdict.severity = degraded;
        verdict.certainty = proved;
        verdict.says = "port mlx5_0:1 of node1 is DOWN, Polling, the same one of node0 is ACTIVE";
        return verdict;
      }()}},
    {"other numbers, and fewer ports on one node",
     [](World& w) {
       numbered_otherwise(w);
       set_state(w, "mlx5_2", "DOWN", "Polling");
     },
     {[] {
       Verdict verdict = down("DOWN, Polling", kTwin, "(manual)");
       verdict.says = "port mlx5_0:1 of node1 is DOWN, Polling, the same one of node0 is ACTIVE";
       verdict.evidence = {
           "node1 rdma.mlx5_0:1.state: DOWN, Polling, not ACTIVE; cat "
           "/sys/class/infiniband/mlx5_0/ports/1/state; ibstat mlx5_0"};
       return verdict;
     }()}},
    {"a fabric that nobody manages: said once", no_manager, {unmanaged()}},
    {"near miss: one node's ports wait, and nobody else has InfiniBand",
     [](World& w) {
       no_manager(w);
       for (const std::size_t i : {1U, 2U, 3U}) {
         change_rdma(w, i, [](Rdma& rdma) { rdma.devices.clear(); });
       }
     },
     {},
     {},
     "NCCL uses no RDMA port"},
    {"near miss: no cable is in",
     [](World& w) {
       no_manager(w);
       for (std::size_t i = 0; i < 4; ++i) {
         for (const char* name : {"mlx5_0", "mlx5_1"}) {
           change_hca(w, i, name, [](RdmaDevice&, RdmaPort& port) {
             port.state = "DOWN";
             port.physical = "Polling";
           });
         }
       }
     },
     {},
     {},
     "NCCL uses no RDMA port"},
    {"a state that nobody saw is a gap, and not down",
     [](World& w) {
       give_infiniband(w);
       set_state(w, "mlx5_1", "", "");
     },
     {},
     {"node1 rdma.mlx5_1:1.state"}},
    {"near miss: one node alone",
     [](World& w) {
       polling(w);
       w.cluster.nodes.erase(w.cluster.nodes.begin());
       w.cluster.nodes.resize(1);
       set_and_predict(w, "NCCL_IB_HCA", "mlx5_0,mlx5_1");
     },
     {},
     {},
     "one node alone"},
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

std::string first_fix(void (*change)(World&)) {
  World world;
  change(world);
  const Check& check = find_check("rdma/port_state");
  Judge judge(check.codes);
  check.run({.cluster = world.cluster, .expect = world.expect}, judge);
  REQUIRE_FALSE(judge.findings().empty());
  return judge.findings().front().fix.front().text;
}
bool says(const std::string& text, const std::string& phrase) {
  return text.find(phrase) != std::string::npos;
}

TEST_CASE("a second subnet manager is never advised while a port is ACTIVE") {
  const std::string at_work = first_fix(init);
  CHECK(says(at_work, "mlx5_0:1 of node0 is ACTIVE), so start no second one"));
  CHECK_FALSE(says(at_work, "opensm"));
  const std::string none = first_fix(no_manager);
  CHECK(says(none, "systemctl start opensm"));
  CHECK(says(none, "a fabric has one manager"));
  const std::string named = first_fix([](World& w) {
    no_manager(w);
    set_and_predict(w, "NCCL_IB_HCA", "=mlx5_0");
  });
  CHECK(says(named, "a fabric has one manager"));
}

}  // namespace
}  // namespace distdoctor::testing
