#include "support/check_cases.h"
#include "support/qos.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

const std::string kLook =
    "; mlnx_qos -i rdma0; dcb pfc show dev rdma0; dcb app show dev rdma0; grep . "
    "/sys/class/net/rdma0/ecn/roce_*/enable/*; cat /sys/class/infiniband/mlx5_0/tc/1/traffic_class";

std::string row(const std::string& node,
                const std::string& aspect,
                const std::string& value,
                const std::string& usual) {
  return node + " rdma.mlx5_0:1, mlx5_1:1: " + aspect + ": " + value + ", not " + usual + kLook;
}
Verdict differs(Severity severity,
                const std::string& says,
                const std::vector<std::string>& evidence,
                const std::vector<std::string>& fixes = {"node2: (manual)"}) {
  return {.code = "rdma-qos-differs",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = {"node2"},
          .evidence = evidence,
          .fixes = fixes};
}
const std::string kSays =
    "RoCE ports of node2 are set up otherwise than those of the other nodes: ";

void only(World& w, std::size_t nodes) {
  w.cluster.nodes.resize(nodes);
  w.cluster.predicted.nodes.resize(nodes);
}

const char* const kUntold = "no RoCE port in use tells of its priorities";

const std::vector<CheckCase> cases = {
    {"healthy: no RDMA", [](World&) {}, {}, {}, kUntold},
    {"healthy: InfiniBand", give_infiniband, {}, {}, kUntold},
    {"healthy: RoCE that tells nothing", give_roce, {}, {}, kUntold},
    {"healthy: alike", give_lossless_roce},
    {"healthy: the rails of a node differ, and alike on all nodes",
     [](World& w) {
       give_lossless_roce(w);
       for (std::size_t i = 0; i < 4; ++i) {
         w.change_link(i, "rdma1",
                       [](Link& link) { link.qos = LinkQos{.trust = "pcp", .pause = 0}; });
       }
     }},
    {"no flow control on one node",
     [](World& w) {
       give_lossless_roce(w);
       change_qos(w, 2, [](LinkQos& qos) { qos.pause = 0; });
     },
     {differs(degraded,
              kSays + "priority flow control; the job's packets feel it",
              {row("node2", "priority flow control", "priority none", "priority 3")})}},
    {"trust was forgotten at boot",
     [](World& w) {
       give_lossless_roce(w);
       change_qos(w, 2, [](LinkQos& qos) {
         qos.trust = "";
         qos.by_dscp.clear();
       });
     },
     {differs(degraded, kSays + "trust", {row("node2", "trust", "pcp", "dscp")})}},
    {"both ends of ECN, and more",
     [](World& w) {
       give_lossless_roce(w);
       change_qos(w, 2, [](LinkQos& qos) {
         qos.ecn_tells = 0;
         qos.ecn_slows = 0;
       });
     },
     {differs(degraded,
              kSays + "ECN, notification point; ECN, reaction point",
              {row("node2", "ECN, notification point", "priority none", "priority 3"),
               row("node2", "ECN, reaction point", "priority none", "priority 3")},
              {"node2: (manual)", "node2: (manual)"})}},
    {"a priority that the job does not have: a notice",
     [](World& w) {
       give_lossless_roce(w);
       change_qos(w, 2, [](LinkQos& qos) { qos.pause = 1 << 3 | 1 << 5; });
     },
     {differs(notice,
              kSays + "priority flow control",
              {row("node2", "priority flow control", "priority 3, 5", "priority 3")})}},
    {"a class that one node forces",
     [](World& w) {
       give_lossless_roce(w);
       for (const char* name : {"mlx5_0", "mlx5_1"}) {
         change_hca(w, 2, name, [](RdmaDevice&, RdmaPort& port) { port.traffic_class = 0; });
       }
     },
     {differs(degraded,
              kSays + "forced traffic class",
              {row("node2", "forced traffic class", "0", "none")})}},
    {"of two nodes neither is the odd one",
     [](World& w) {
       give_lossless_roce(w);
       only(w, 2);
       change_qos(w, 1, [](LinkQos& qos) { qos.pause = 0; });
     },
     {[] {
       Verdict verdict =
           differs(degraded, "RoCE ports of node0, node1 are set up otherwise than each other",
                   {row("node0", "priority flow control", "priority 3", "priority none"),
                    row("node1", "priority flow control", "priority none", "priority 3")},
                   {"*: (manual)"});
       verdict.certainty = possible;
       verdict.blamed = {"node0", "node1"};
       return verdict;
     }()}},
    {"a job that may do without NCCL: a notice",
     [](World& w) {
       give_lossless_roce(w);
       change_qos(w, 2, [](LinkQos& qos) { qos.pause = 0; });
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {differs(notice,
              kSays + "priority flow control",
              {row("node2", "priority flow control", "priority none", "priority 3")})}},
    {"near miss: a node that tells less",
     [](World& w) {
       give_lossless_roce(w);
       change_qos(w, 2, [](LinkQos& qos) {
         qos.pause.reset();
         qos.ecn_tells.reset();
         qos.ecn_slows.reset();
       });
     }},
    {"near miss: a port that NCCL does not use",
     [](World& w) {
       give_lossless_roce(w);
       w.change_link(2, "rdma1", [](Link& link) {
         World::change(link.qos, [](LinkQos& qos) { qos.pause = 0; });
       });
       set_and_predict(w, "NCCL_IB_HCA", "=mlx5_0");
     }},
    {"near miss: two links of one device, and which port is which is not told",
     [](World& w) {
       give_lossless_roce(w);
       World::change(w.node(2).links, [](std::vector<Link>& links) {
         for (Link& link : links) {
           if (link.rdma_device == "mlx5_1") link.rdma_device = "mlx5_0";
           if (link.qos.known()) World::change(link.qos, [](LinkQos& qos) { qos.pause = 0; });
         }
       });
     }},
    {"a card that was late is a gap",
     [](World& w) {
       give_lossless_roce(w);
       w.change_link(2, "rdma1", [](Link& link) { link.qos = Unknown{Why::timed_out, "late"}; });
     },
     {},
     {"node2 net.rdma1.qos"}},
    {"unseen links are a gap",
     [](World& w) {
       give_lossless_roce(w);
       w.node(2).links = Unknown{.kind = Why::failed, .text = "netlink: EPERM"};
     },
     {},
     {"node2 net.links"}},
};

TEST_CASE("rdma/qos_differs") {
  run_cases("rdma/qos_differs", cases);
}

}  // namespace
}  // namespace distdoctor::testing
