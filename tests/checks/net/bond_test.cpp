#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// eth1 becomes a bond of two links on every node.
void bond(World& w) {
  for (NodeFacts& node : w.cluster.nodes) {
    World::change(node.links, [](std::vector<Link>& links) {
      for (Link& link : links) {
        if (link.name != "eth1") continue;
        link.kind = LinkKind::bond;
        link.speed_mbps = 200'000;
      }
      for (const int index : {7, 8}) {
        Link member{.name = "p" + std::to_string(index),
                    .index = index,
                    .kind = LinkKind::ethernet,
                    .mtu = 9000,
                    .speed_mbps = 100'000,
                    .up = true,
                    .running = true,
                    .carrier = true,
                    .operstate = "up",
                    .master = "eth1"};
        links.push_back(member);
      }
    });
  }
}
void unplug(World& w, const char* name) {
  w.change_link(1, name, [](Link& link) {
    link.running = link.carrier = false;
    link.operstate = "down";
    link.speed_mbps.reset();
  });
}
void half(World& w) {
  bond(w);
  unplug(w, "p8");
  w.change_link(1, "eth1", [](Link& link) { link.speed_mbps = 100'000; });
}

Verdict down(Severity severity, const char* says) {
  return {.code = "net-bond-member-down",
          .severity = severity,
          .certainty = severity == degraded ? likely : possible,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = {"node1"},
          .evidence = {"node1 net.p8.running: down, not up, as a member of eth1; cat "
                       "/proc/net/bonding/eth1; ethtool p8"},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: bonds", bond},
    {"one link of two, where the others have both",
     half,
     {down(degraded,
           "eth1 of node1 runs on 1 of its 2 links: p8 has no carrier, and it is slower than on "
           "node0")}},
    {"one link of two, and no speed tells of more: a notice",
     [](World& w) {
       bond(w);
       unplug(w, "p8");
     },
     {down(notice, "p8 has no carrier; what is left is slower, or has no reserve")}},
    {"near miss: a bond that carries nothing of the job",
     [](World& w) {
       half(w);
       for (Prediction& prediction : w.cluster.predicted.nodes) prediction.nccl = NcclChoice{};
     }},
    {"near miss: none left is another check's",
     [](World& w) {
       half(w);
       unplug(w, "p7");
     }},
    {"near miss: a bridge's port",
     [](World& w) {
       half(w);
       w.change_link(1, "eth1", [](Link& link) { link.kind = LinkKind::bridge; });
     }},
    {"unseen links are a gap",
     [](World& w) { w.node(1).links = Unknown{.kind = Why::failed, .text = "netlink: EPERM"}; },
     {},
     {"node1 net.links"}},
};

TEST_CASE("net/bond") {
  run_cases("net/bond", cases);
}

}  // namespace
}  // namespace distdoctor::testing
