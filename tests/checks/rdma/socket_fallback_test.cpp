#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// On two nodes, so that there are few rows.
void switched_off(World& w, const std::string& name, const std::string& value) {
  w.cluster.nodes.resize(2);
  w.cluster.predicted.nodes.resize(2);
  set_and_predict(w, name, value);
}
void disabled(World& w) {
  give_infiniband(w);
  switched_off(w, "NCCL_IB_DISABLE", "1");
}

Verdict off(const std::string& node,
            const std::string& name,
            const std::string& value,
            Severity severity = degraded) {
  return {
      .code = "rdma-socket-fallback",
      .severity = severity,
      .certainty = likely,
      .symptom = Symptom::slow,
      .says = name + "=" + value + " (--env) keeps NCCL on sockets, though " + node +
              " has the RDMA ports mlx5_0:1, mlx5_1:1",
      .blamed = {node},
      .evidence = {node + " " + name + ": " + value +
                   " (--env), not unset, so that RDMA is used; printenv " + name + "; rdma link"},
      .fixes = {"*: " + name + " unset"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: RDMA is used", give_infiniband},
    {"NCCL_IB_DISABLE",
     disabled,
     {off("node0", "NCCL_IB_DISABLE", "1"), off("node1", "NCCL_IB_DISABLE", "1")}},
    {"NCCL_NET",
     [](World& w) {
       give_roce(w);
       switched_off(w, "NCCL_NET", "Socket");
     },
     {off("node0", "NCCL_NET", "Socket"), off("node1", "NCCL_NET", "Socket")}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       disabled(w);
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {off("node0", "NCCL_IB_DISABLE", "1", notice), off("node1", "NCCL_IB_DISABLE", "1", notice)}},
    {"near miss: true is 0",
     [](World& w) {
       give_infiniband(w);
       switched_off(w, "NCCL_IB_DISABLE", "true");
     }},
    {"near miss: a plugin has RDMA of its own",
     [](World& w) {
       give_infiniband(w);
       w.node(0).devices = w.node(1).devices = Devices{.rdma = {"mlx5_0"}};
       switched_off(w, "NCCL_NET", "AWS Libfabric");
     }},
    {"near miss: cloud machines of 25 Gb/s are better off so",
     [](World& w) {
       give_roce(w);
       for (const std::size_t i : {0U, 1U}) {
         for (const char* name : {"mlx5_0", "mlx5_1"}) {
           change_hca(w, i, name, [](RdmaDevice&, RdmaPort& port) { port.rate_gbps = 25; });
         }
       }
       switched_off(w, "NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "no usable port was made for such data"},
    {"near miss: software RDMA",
     [](World& w) {
       give_roce(w);
       for (const std::size_t i : {0U, 1U}) {
         change_rdma(w, i, [](Rdma& rdma) {
           for (RdmaDevice& device : rdma.devices) device.driver = "rdma_rxe";
         });
       }
       switched_off(w, "NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "no usable port was made for such data"},
    {"near miss: programs could not use it anyway",
     [](World& w) {
       disabled(w);
       for (const std::size_t i : {0U, 1U}) {
         change_rdma(w, i, [](Rdma& rdma) { rdma.libibverbs.clear(); });
       }
     },
     {},
     {},
     "no usable port was made for such data"},
    {"near miss: one node alone",
     [](World& w) {
       disabled(w);
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"unseen is a gap",
     [](World& w) {
       disabled(w);
       w.node(0).rdma = w.node(1).rdma = Unknown{.kind = Why::denied, .text = "/sys: EACCES"};
     },
     {},
     {"node0 rdma", "node1 rdma"}},
};

TEST_CASE("rdma/socket_fallback") {
  run_cases("rdma/socket_fallback", cases);
}

}  // namespace
}  // namespace distdoctor::testing
