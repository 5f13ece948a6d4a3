#include "support/bonds.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// Bonds of which only the links are known.
void bond(World& w) {
  give_bonds(w, "802.3ad");
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) {
    w.change_link(i, "eth1", [](Link& link) { link.bond.reset(); });
  }
}
void unplug(World& w, std::size_t node, const char* name) {
  w.change_link(node, name, [](Link& link) {
    link.running = link.carrier = false;
    link.operstate = "down";
    link.speed_mbps.reset();
  });
  change_bond(w, node, [&](Bond& bond) {
    for (BondMember& member : bond.members) {
      if (member.name == name) member.up = false;
    }
  });
}
void half(World& w) {
  bond(w);
  unplug(w, 1, "p8");
  w.change_link(1, "eth1", [](Link& link) { link.speed_mbps = 100'000; });
}

Verdict down(Severity severity, const char* says, const std::string& state = "down") {
  return {.code = "net-bond-member-down",
          .severity = severity,
          .certainty = severity == degraded ? likely : possible,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = {"node1"},
          .evidence = {"node1 net.p8.running: " + state +
                       ", not up, as a member of eth1; cat "
                       "/proc/net/bonding/eth1; ethtool p8"},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}, {}, {}, "no bond carries the job's data"},
    {"healthy: bonds", bond},
    {"healthy: bonds that tell of themselves", [](World& w) { give_bonds(w, "802.3ad"); }},
    {"healthy: links that have failed before",
     [](World& w) {
       give_bonds(w, "802.3ad");
       change_bonds(w, [](Bond& bond) { bond.members[1].failures = 99; });
     }},
    {"one link of two, where the others have both",
     half,
     {down(degraded,
           "eth1 of node1 runs on 1 of its 2 links: p8 is down, and it is slower than on "
           "node0")}},
    {"one link of two, and no speed tells of more: a notice",
     [](World& w) {
       bond(w);
       unplug(w, 1, "p8");
     },
     {down(notice, "p8 is down; what is left is slower, or has no reserve")}},
    {"one link of two that share the load, whatever the speed says",
     [](World& w) {
       give_bonds(w, "balance-xor");
       unplug(w, 1, "p8");
     },
     {down(degraded, "p8 is down, and it is slower than on node0")}},
    {"one link of two on every node: it may be meant",
     [](World& w) {
       give_bonds(w, "balance-xor");
       for (std::size_t i = 0; i < 4; ++i) unplug(w, i, "p8");
       for (const std::size_t i : {0U, 2U, 3U}) {  // so that node1 alone is told of
         World::change(w.node(i).links, [](std::vector<Link>& links) {
           std::erase_if(links, [](const Link& link) { return link.name == "p8"; });
         });
       }
     },
     {down(notice, "p8 is down; what is left is slower")}},
    {"the reserve is gone: a notice",
     [](World& w) {
       give_bonds(w, "active-backup");
       unplug(w, 1, "p8");
     },
     {down(notice, "p8 is down; it has no reserve left")}},
    {"the bond's own monitor sees further than the carrier",
     [](World& w) {
       give_bonds(w, "balance-xor");
       change_bond(w, 1, [](Bond& bond) { bond.members[1].up = false; });
     },
     {down(degraded,
           "p8 is down, and it is slower than on node0",
           "down, by the bond's own monitor")}},
    {"near miss: a bond that carries nothing of the job",
     [](World& w) {
       half(w);
       for (Prediction& prediction : w.cluster.predicted.nodes) prediction.nccl = NcclChoice{};
     },
     {},
     {},
     "no bond carries the job's data"},
    {"near miss: none left is another check's",
     [](World& w) {
       half(w);
       unplug(w, 1, "p7");
     }},
    {"near miss: a bridge's port",
     [](World& w) {
       half(w);
       w.change_link(1, "eth1", [](Link& link) { link.kind = LinkKind::bridge; });
     }},
    {"unseen links are a gap",
     [](World& w) { w.node(1).links = Unknown{.kind = Why::failed, .text = "netlink: EPERM"}; },
     {},
     {"node1 net.links"},
     "no bond carries the job's data"},
};

TEST_CASE("net/bond") {
  run_cases("net/bond", cases);
}

}  // namespace
}  // namespace distdoctor::testing
