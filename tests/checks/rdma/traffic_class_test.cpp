#include "support/check_cases.h"
#include "support/qos.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr const char* kLossy = "rdma-traffic-class-lossy";
constexpr const char* kUnheeded = "rdma-traffic-class-unheeded";

void unset(World& w) {
  give_lossless_roce(w);
  for (Prediction& prediction : w.cluster.predicted.nodes) prediction.settings.erase("NCCL_IB_TC");
}
void by_tag(World& w) {
  give_lossless_roce(w);
  change_all_qos(w, [](LinkQos& qos) { qos.trust = "pcp"; });
}
// One node is enough to be told of.
void only_on_node1(World& w) {
  for (const std::size_t i : {0U, 2U, 3U}) {
    change_qos(w, i, [](LinkQos& qos) { qos.pause = 0; });
  }
}

Verdict said(const char* code,
             const std::string& says,
             const std::string& observed,
             const std::string& fix) {
  return {.code = code,
          .severity = notice,
          .certainty = possible,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = {"node1"},
          .evidence = {"node1 rdma.mlx5_0:1, mlx5_1:1.priority: " + observed +
                       "; priority flow control is on for 3, not a priority with priority flow "
                       "control, since the port has some; mlnx_qos -i rdma0; dcb pfc show dev "
                       "rdma0; dcb app show dev rdma0; cat /sys/class/infiniband/mlx5_0/tc/1/"
                       "traffic_class"},
          .fixes = {fix}};
}
const std::string kSays =
    "priority 3 is kept from loss at mlx5_0:1, mlx5_1:1 of node1, and the job's packets have "
    "priority ";

const char* const kUntold = "no RoCE port in use tells of its priorities";

const std::vector<CheckCase> cases = {
    {"healthy: no RDMA", [](World&) {}, {}, {}, kUntold},
    {"healthy: InfiniBand", give_infiniband, {}, {}, kUntold},
    {"healthy: RoCE that tells nothing", give_roce, {}, {}, kUntold},
    {"healthy: lossless, and the job is in that class", give_lossless_roce},
    {"healthy: lossless, and the ports put all packets into that class",
     [](World& w) {
       unset(w);
       for (std::size_t i = 0; i < 4; ++i) {
         for (const char* name : {"mlx5_0", "mlx5_1"}) {
           change_hca(w, i, name, [](RdmaDevice&, RdmaPort& port) { port.traffic_class = 106; });
         }
       }
     }},
    {"healthy: no priority is kept from loss: ECN, or pause frames for all",
     [](World& w) {
       unset(w);
       change_all_qos(w, [](LinkQos& qos) { qos.pause = 0; });
     }},
    {"healthy: a login, which does not show what the job's script exports",
     [](World& w) {
       unset(w);
       for (std::size_t i = 0; i < 4; ++i) w.node(i).context = Context::ssh;
     },
     {},
     {},
     "which priority the job's packets have is not known here"},
    {"healthy: nothing is told of flow control",
     [](World& w) {
       unset(w);
       change_all_qos(w, [](LinkQos& qos) { qos.pause.reset(); });
     },
     {},
     {},
     "which priority the job's packets have is not known here"},
    {"NCCL_IB_TC was forgotten",
     [](World& w) {
       unset(w);
       only_on_node1(w);
     },
     {said(kLossy,
           kSays + "0",
           "traffic class 0: its DSCP 0 means priority 0",
           "*: NCCL_IB_TC=106")}},
    {"the same on two nodes is said once",
     [](World& w) {
       unset(w);
       only_on_node1(w);
       change_qos(w, 2, [](LinkQos& qos) { qos.pause = 1 << 3; });
     },
     {[] {
       Verdict verdict =
           said(kLossy, "at mlx5_0:1, mlx5_1:1 of node1, node2, and the job's packets",
                "traffic class 0: its DSCP 0 means priority 0", "*: NCCL_IB_TC=106");
       verdict.blamed.emplace_back("node2");
       verdict.evidence.push_back("node2" + verdict.evidence.front().substr(5));
       return verdict;
     }()}},
    {"NCCL_IB_TC in NCCL's other spellings leads elsewhere",
     [](World& w) {
       give_lossless_roce(w);
       w.set("NCCL_IB_TC", "0x80");
       only_on_node1(w);
     },
     {said(kLossy,
           kSays + "4",
           "NCCL_IB_TC=0x80 (--env): its DSCP 32 means priority 4",
           "*: NCCL_IB_TC=106")}},
    {"the port forces another class than the job asks for",
     [](World& w) {
       give_lossless_roce(w);
       only_on_node1(w);
       for (const char* name : {"mlx5_0", "mlx5_1"}) {
         change_hca(w, 1, name, [](RdmaDevice&, RdmaPort& port) { port.traffic_class = 96; });
       }
     }},
    {"the port forces a class that is lost",
     [](World& w) {
       give_lossless_roce(w);
       only_on_node1(w);
       for (const char* name : {"mlx5_0", "mlx5_1"}) {
         change_hca(w, 1, name, [](RdmaDevice&, RdmaPort& port) { port.traffic_class = 64; });
       }
     },
     {said(kLossy,
           kSays + "2",
           "traffic class 64, forced by the port: its DSCP 16 means priority 2",
           "node1: (manual)")}},
    {"the site's own table",
     [](World& w) {
       give_lossless_roce(w);
       only_on_node1(w);
       change_qos(w, 1, [](LinkQos& qos) {
         qos.by_dscp[26].priority = 5;
         for (DscpPriority& row : qos.by_dscp) {
           if (row.priority == 3 && row.dscp != 30) row.priority = 5;
         }
       });
     },
     {said(kLossy,
           kSays + "5",
           "NCCL_IB_TC=106 (--env): its DSCP 26 means priority 5",
           "*: NCCL_IB_TC=122")}},
    {"the job's class, where the port goes by tags",
     [](World& w) {
       by_tag(w);
       only_on_node1(w);
     },
     {said(kUnheeded,
           "the job's traffic class (NCCL_IB_TC=106 (--env)) is not looked at by mlx5_0:1, "
           "mlx5_1:1 of "
           "node1: trust is by PCP alone, and only priority 3 is kept from loss",
           "NCCL_IB_TC=106 (--env): the port trusts PCP alone, and NCCL_IB_SL not set means "
           "priority 0",
           "node1: (manual)")}},
    {"tags, and no class: the kernel's mlx5 without a table",
     [](World& w) {
       unset(w);
       change_all_qos(w, [](LinkQos& qos) {
         qos.trust = "";
         qos.by_dscp.clear();
       });
       only_on_node1(w);
     },
     {said(kLossy,
           kSays + "0",
           "traffic class 0: the port trusts PCP alone, and NCCL_IB_SL not set means priority 0",
           "node1: (manual)")}},
    {"near miss: tags, and NCCL_IB_SL goes by them",
     [](World& w) {
       by_tag(w);
       w.set("NCCL_IB_SL", "3");
     }},
    {"near miss: a table that may be hidden",
     [](World& w) {
       unset(w);
       change_all_qos(w, [](LinkQos& qos) { qos.by_dscp.clear(); });
     },
     {},
     {},
     "which priority the job's packets have is not known here"},
    {"near miss: a code point with two priorities",
     [](World& w) {
       unset(w);
       change_all_qos(w, [](LinkQos& qos) { qos.by_dscp.push_back({.dscp = 0, .priority = 3}); });
     },
     {},
     {},
     "which priority the job's packets have is not known here"},
    {"near miss: another maker's card, whose default is not known",
     [](World& w) {
       unset(w);
       for (std::size_t i = 0; i < 4; ++i) {
         for (const char* name : {"mlx5_0", "mlx5_1"}) {
           change_hca(w, i, name, [](RdmaDevice& device, RdmaPort&) { device.driver = "bnxt_en"; });
         }
       }
       change_all_qos(w, [](LinkQos& qos) { qos.by_dscp = {{.dscp = 26, .priority = 3}}; });
     },
     {},
     {},
     kUntold},
    {"near miss: ports that NCCL does not use",
     [](World& w) {
       unset(w);
       set_and_predict(w, "NCCL_IB_HCA", "=mlx5_7");
     },
     {},
     {},
     kUntold},
    {"near miss: one node alone",
     [](World& w) {
       unset(w);
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"unseen links are a gap",
     [](World& w) {
       unset(w);
       change_all_qos(w, [](LinkQos& qos) { qos.pause = 0; });
       w.node(1).links = Unknown{.kind = Why::failed, .text = "netlink: EPERM"};
     },
     {},
     {"node1 net.links"}},
};

TEST_CASE("rdma/traffic_class") {
  run_cases("rdma/traffic_class", cases);
}

}  // namespace
}  // namespace distdoctor::testing
