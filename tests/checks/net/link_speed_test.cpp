#include "checks/net/choices.h"
#include "support/check_cases.h"

#include <cstddef>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void speed(World& w, std::size_t node, int mbps) {
  w.change_link(node, "eth1", [mbps](Link& link) { link.speed_mbps = mbps; });
}

Verdict slower(Severity severity,
               Certainty certainty,
               const std::string& says,
               const std::vector<std::string>& blamed,
               const std::string& seen,
               const std::string& wanted) {
  Verdict made{.code = "net-link-speed-differs",
               .severity = severity,
               .certainty = certainty,
               .symptom = Symptom::slow,
               .says = says,
               .blamed = blamed};
  for (const std::string& node : blamed) {
    made.evidence.push_back(node + " data.link: eth1 (" + seen + "), not " + wanted +
                            "; ethtool eth1");
    made.fixes.push_back(node + ": (manual)");
  }
  return made;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"one of four",
     [](World& w) { speed(w, 2, 25'000); },
     {slower(degraded,
             likely,
             "NCCL's data goes over eth1 (25 Gb/s) on node2, and over eth1 (100 Gb/s) on most",
             {"node2"},
             "25 Gb/s",
             "100 Gb/s, as on node0")}},
    {"not twice as fast: a notice",
     [](World& w) { speed(w, 2, 60'000); },
     {slower(notice,
             possible,
             "eth1 (60 Gb/s) on node2",
             {"node2"},
             "60 Gb/s",
             "100 Gb/s, as on node0")}},
    {"two kinds of machines: a notice",
     [](World& w) {
       speed(w, 0, 25'000);
       speed(w, 3, 25'000);
     },
     {slower(notice,
             possible,
             "eth1 (25 Gb/s) on node0, node3, and over eth1 (100 Gb/s) on node1",
             {"node0", "node3"},
             "25 Gb/s",
             "100 Gb/s, as on node1")}},
    {"near miss: one that is faster than most", [](World& w) { speed(w, 1, 400'000); }},
    {"two desktops, and a cable with two pairs",
     [](World& w) {
       w.cluster.nodes.resize(2);
       w.cluster.predicted.nodes.resize(2);
       speed(w, 0, 1000);
       speed(w, 1, 100);
     },
     {slower(degraded,
             likely,
             "eth1 (100 Mb/s) on node1, and over eth1 (1 Gb/s) on node0",
             {"node1"},
             "100 Mb/s",
             "1 Gb/s, as on node0")}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       speed(w, 2, 25'000);
       w.cluster.job.nccl = Use::maybe;
     },
     {slower(notice,
             likely,
             "eth1 (25 Gb/s) on node2",
             {"node2"},
             "25 Gb/s",
             "100 Gb/s, as on node0")}},
    {"near miss: no speed is known of one",
     [](World& w) {
       speed(w, 2, 25'000);
       w.change_link(1, "eth1", [](Link& link) { link.speed_mbps = std::nullopt; });
     }},
    {"near miss: RDMA carries the data",
     [](World& w) {
       speed(w, 2, 25'000);
       for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) {
         w.node(i).devices = Devices{.gpus = {"/dev/nvidia0"}, .rdma = {"mlx5_0"}};
         w.prediction(i).hcas = NcclHcas{.used = {{.device = "mlx5_0"}}};
       }
     }},
    {"near miss: more links on one node, each slower",
     [](World& w) {
       speed(w, 2, 25'000);
       nccl_takes(w, 2, {pick("eth1", fast(2)), pick("eth0", mgmt(2))});
     }},
    {"unseen links are a gap",
     [](World& w) { w.node(1).links = Unknown{.kind = Why::failed, .text = "netlink: EPERM"}; },
     {},
     {"node1 net.links"}},
};

TEST_CASE("net/link_speed") {
  run_cases("net/link_speed", cases);
}

}  // namespace
}  // namespace distdoctor::testing
