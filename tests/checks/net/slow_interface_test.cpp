#include "checks/net/choices.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// NCCL over eth0 with 1 Gb/s, beside an eth1 with 100.
void over_eth0(World& w) {
  for (const std::size_t i : {0U, 1U, 2U, 3U}) nccl_takes(w, i, {pick("eth0", mgmt(i))});
}
void gloo_over_eth0(World& w) {
  use_gloo(w);
  recommend(w, "GLOO_SOCKET_IFNAME", "eth1");
}
void rdma_everywhere(World& w) {
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    w.node(i).devices = Devices{.gpus = {"/dev/nvidia0"}, .rdma = {"mlx5_0"}};
    w.prediction(i).hcas = Unknown{.text = "an agent that did not look"};
  }
}

Verdict slow(Severity severity, const std::string& library, const std::string& fix) {
  Verdict made{.code = "net-slow-interface",
               .severity = severity,
               .certainty = likely,
               .symptom = Symptom::slow,
               .says = library + "'s data goes over eth0 (1 Gb/s), though eth1 (100 Gb/s) joins",
               .blamed = {"node0", "node1", "node2", "node3"},
               .fixes = {fix}};
  for (const std::string& node : made.blamed) {
    made.evidence.push_back(node +
                            " data.link: eth0 (1 Gb/s), not eth1 (100 Gb/s); ethtool eth0; "
                            "ethtool eth1");
  }
  return made;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"NCCL over the slow one",
     [](World& w) {
       over_eth0(w);
       recommend(w, "NCCL_SOCKET_IFNAME", "=eth1");
     },
     {slow(degraded, "NCCL", "*: NCCL_SOCKET_IFNAME==eth1")}},
    {"in words where nothing is proved", over_eth0, {slow(degraded, "NCCL", "*: (manual)")}},
    {"Gloo over the slow one",
     gloo_over_eth0,
     {slow(degraded, "Gloo", "*: GLOO_SOCKET_IFNAME=eth1")}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       over_eth0(w);
       w.cluster.job.nccl = Use::maybe;
     },
     {slow(notice, "NCCL", "*: (manual)")}},
    {"near miss: RDMA carries the data",
     [](World& w) {
       over_eth0(w);
       rdma_everywhere(w);
     }},
    {"near miss: RDMA carries the data, as NCCL's own rules say",
     [](World& w) {
       over_eth0(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         w.prediction(i).hcas = NcclHcas{.used = {{.device = "mlx5_0"}}};
       }
     }},
    {"near miss: EFA, by which a plugin may carry the data",
     [](World& w) {
       over_eth0(w);
       rdma_everywhere(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         w.prediction(i).hcas = NcclHcas{};
         w.node(i).rdma = Rdma{
             .devices = {{.name = "rdmap16s27", .driver = "efa", .ports = {{.state = "ACTIVE"}}}}};
       }
     }},
    {"RDMA is there, but no port that NCCL would take",
     [](World& w) {
       over_eth0(w);
       rdma_everywhere(w);
       w.prediction(2).hcas = NcclHcas{};
     },
     {slow(degraded, "NCCL", "*: (manual)")}},
    {"RDMA is there, and disabled",
     [](World& w) {
       over_eth0(w);
       rdma_everywhere(w);
       w.set("NCCL_IB_DISABLE", "1");
     },
     {slow(degraded, "NCCL", "*: (manual)")}},
    {"near miss: NCCL_IB_DISABLE=true is 0 to NCCL",
     [](World& w) {
       over_eth0(w);
       rdma_everywhere(w);
       w.set("NCCL_IB_DISABLE", "true");
     }},
    {"RDMA is there, and NCCL_NET says sockets: its case does not count",
     [](World& w) {
       over_eth0(w);
       rdma_everywhere(w);
       w.set("NCCL_NET", "SOCKET");
     },
     {slow(degraded, "NCCL", "*: (manual)")}},
    {"near miss: NCCL_NET names another transport",
     [](World& w) {
       over_eth0(w);
       rdma_everywhere(w);
       w.set("NCCL_NET", "IB");
     }},
    {"near miss: the control traffic of an NCCL job's Gloo may be slow",
     [](World& w) { w.cluster.job.gloo = Use::maybe; }},
    {"near miss: one node lacks the fast link",
     [](World& w) {
       over_eth0(w);
       w.change_link(3, "eth1", [](Link& link) { link.running = false; });
     }},
    {"near miss: the fast links do not meet",
     [](World& w) {
       over_eth0(w);
       w.change_link(3, "eth1", [](Link& link) { link.addresses[0].address = addr("10.30.0.13"); });
     }},
    {"near miss: the fast link was tried in vain",
     [](World& w) {
       over_eth0(w);
       w.pair(1, 3).dials.clear();
       dialled(w, 1, 3, fast(3), Outcome::timed_out);
     }},
    {"near miss: not twice as fast",
     [](World& w) {
       over_eth0(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         w.change_link(i, "eth1", [](Link& link) { link.speed_mbps = 1'999; });
       }
     }},
    {"near miss: striped over both",
     [](World& w) {
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         nccl_takes(w, i, {pick("eth0", mgmt(i)), pick("eth1", fast(i))});
       }
     }},
    {"near miss: a link whose speed the kernel does not know",
     [](World& w) {
       over_eth0(w);
       w.change_link(2, "eth0", [](Link& link) { link.speed_mbps = std::nullopt; });
     }},
    {"near miss: one node alone",
     [](World& w) {
       over_eth0(w);
       w.cluster.nodes.resize(1);
     }},
    {"whether there is RDMA is unseen: a gap, and no finding",
     [](World& w) {
       over_eth0(w);
       w.node(2).devices = Unknown{.kind = Why::denied, .text = "/sys: EACCES"};
     },
     {},
     {"node2 devices"}},
};

TEST_CASE("net/slow_interface") {
  run_cases("net/slow_interface", cases);
}

}  // namespace
}  // namespace distdoctor::testing
