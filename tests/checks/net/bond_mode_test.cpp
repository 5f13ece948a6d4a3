#include "support/bonds.h"
#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void lacp(World& w) {
  give_bonds(w, "802.3ad");
  change_bonds(w, [](Bond& bond) {
    bond.aggregator = 1;
    for (BondMember& member : bond.members) member.aggregator = 1;
  });
}
void part(World& w) {
  lacp(w);
  change_bond(w, 1, [](Bond& bond) { bond.members[1].aggregator = 2; });
}
void slow_member(Bond& bond) {
  bond.members[1].speed_mbps = 10'000;
}

Verdict told(const char* code,
             const std::string& says,
             const std::string& evidence,
             Severity severity = notice) {
  return {.code = code,
          .severity = severity,
          .certainty = severity == degraded ? likely : possible,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = {"node1"},
          .evidence = {"node1 net.eth1." + evidence + "; cat /proc/net/bonding/eth1"},
          .fixes = {"node1: (manual)"}};
}
Verdict apart(Severity severity, const char* rest) {
  return told("net-bond-aggregators",
              std::string("eth1 of node1 carries data on 1 of its 2 links that are up: LACP has "
                          "not put them into one aggregator") +
                  rest,
              "aggregators: p7 in 1, p8 in 2, not all in one", severity);
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}, {}, {}, "no bond carries the job's data"},
    {"healthy: LACP", lacp},
    {"healthy: LACP, as others than root see it",
     [](World& w) {
       lacp(w);
       change_bonds(w, [](Bond& bond) { bond.aggregator = 0; });
     }},
    {"healthy: modes that keep a connection on one link",
     [](World& w) {
       const std::vector<const char*> modes = {"balance-xor", "balance-tlb", "balance-alb",
                                               "active-backup"};
       give_bonds(w, "balance-xor");
       for (std::size_t i = 0; i < 4; ++i) {
         change_bond(w, i, [&](Bond& bond) { bond.mode = modes[i]; });
       }
     }},
    {"healthy: links that have failed before",
     [](World& w) {
       lacp(w);
       change_bonds(w, [](Bond& bond) { bond.members[0].failures = 99; });
     }},
    {"LACP on one link of two, where the others have both",
     part,
     {apart(degraded, ", as it has on node0")}},
    {"the same as others than root see it",
     [](World& w) {
       part(w);
       change_bonds(w, [](Bond& bond) { bond.aggregator = 0; });
     },
     {apart(degraded, ", as it has on node0")}},
    {"LACP on one link of two, and no other node tells of more: it may be meant",
     [](World& w) {
       part(w);
       for (const std::size_t i : {0U, 2U, 3U}) {
         w.change_link(i, "eth1", [](Link& link) { link.bond.reset(); });
       }
     },
     {apart(notice, "")},
     {"node0 net.eth1.bond", "node2 net.eth1.bond", "node3 net.eth1.bond"}},
    {"near miss: the other aggregator's link is down, which is told elsewhere",
     [](World& w) {
       part(w);
       change_bond(w, 1, [](Bond& bond) { bond.members[1].up = false; });
     }},
    {"near miss: other modes have no aggregators",
     [](World& w) {
       part(w);
       change_bonds(w, [](Bond& bond) { bond.mode = "balance-xor"; });
     }},
    {"links of two speeds",
     [](World& w) {
       give_bonds(w, "balance-xor");
       change_bond(w, 1, slow_member);
     },
     {told("net-bond-members-differ",
           "the links of eth1 of node1 are not equally fast (p7 100 Gb/s, p8 10 Gb/s): what is "
           "put on a slow one is slow",
           "speeds: p7 100 Gb/s, p8 10 Gb/s, not one speed for all")}},
    {"near miss: a slow reserve",
     [](World& w) {
       give_bonds(w, "active-backup");
       change_bonds(w, slow_member);
     }},
    {"a slow reserve in use",
     [](World& w) {
       give_bonds(w, "active-backup");
       change_bond(w, 1, [](Bond& bond) {
         slow_member(bond);
         bond.active = "p8";
       });
     },
     {told("net-bond-members-differ",
           "a slower one is in use",
           "speeds: p7 100 Gb/s, p8 10 Gb/s, not one speed for all")}},
    {"near miss: a speed that is not known",
     [](World& w) {
       give_bonds(w, "balance-xor");
       change_bond(w, 1, [](Bond& bond) { bond.members[1].speed_mbps.reset(); });
     }},
    {"packets dealt out in turn",
     [](World& w) {
       give_bonds(w, "balance-xor");
       change_bond(w, 1, [](Bond& bond) { bond.mode = "balance-rr"; });
     },
     {told("net-bond-round-robin",
           "eth1 of node1 deals packets of one connection out over 2 links in turn",
           "mode: balance-rr, not one that keeps a connection on one link")}},
    {"near miss: in turn, over one link",
     [](World& w) {
       give_bonds(w, "balance-xor");
       change_bond(w, 1, [](Bond& bond) {
         bond.mode = "balance-rr";
         bond.members.pop_back();
       });
     }},
    {"near miss: a bond that carries nothing of the job",
     [](World& w) {
       part(w);
       for (Prediction& prediction : w.cluster.predicted.nodes) prediction.nccl = NcclChoice{};
     },
     {},
     {},
     "no bond carries the job's data"},
    {"a bond that carries the job's RDMA",
     [](World& w) {
       part(w);
       for (Prediction& prediction : w.cluster.predicted.nodes) prediction.nccl = NcclChoice{};
       give_roce(w);
       for (std::size_t i = 0; i < 4; ++i) {
         w.change_link(i, "eth1", [](Link& link) { link.rdma_device = "mlx5_0"; });
       }
     },
     {apart(degraded, ", as it has on node0")}},
    {"unseen links are a gap",
     [](World& w) { w.node(1).links = Unknown{.kind = Why::failed, .text = "netlink: EPERM"}; },
     {},
     {"node1 net.links"},
     "no bond carries the job's data"},
};

TEST_CASE("net/bond_mode") {
  run_cases("net/bond_mode", cases);
}

}  // namespace
}  // namespace distdoctor::testing
