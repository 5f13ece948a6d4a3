#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void enter(World& w, const std::string& mac, const std::string& state = "permanent") {
  w.node(1).neighbours = std::vector<Neighbour>{
      {.address = addr(fast(0)), .interface = "eth1", .mac = mac, .state = state}};
}
void dials_end(World& w, Outcome outcome) {
  for (Dial& dial : w.pair(1, 0).dials) {
    if (dial.address != addr(fast(0))) continue;
    dial.outcome = outcome;
    dial.syn_arrived = false;
  }
}
const std::string kNobodys = "02:00:00:00:00:99";

std::string mac_of_node0(World& w) {
  return find_link(*w.node(0).links, "eth1")->mac;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a MAC that the peer does not have, and nothing comes through",
     [](World& w) {
       World::change(w.node(0).links, [](std::vector<Link>& links) {
         for (Link& link : links) {
           if (link.name == "eth1") link.mac = "02:00:00:00:01:01";
         }
       });
       enter(w, kNobodys);
       dials_end(w, Outcome::timed_out);
     },
     {{.code = "net-neighbour-wrong",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "node1 sends what is for node0 (" + fast(0) +
               ") to 02:00:00:00:00:99, which is no "
               "MAC of node0",
       .blamed = {"node1"},
       .evidence = {"node1 neighbour " + fast(0) +
                    ": 02:00:00:00:00:99 permanent on eth1; nothing comes through, not "
                    "02:00:00:00:01:01, that of eth1 on node0; ip neigh show " +
                    fast(0)},
       .fixes = {"node1: ip neigh del " + fast(0) + " dev eth1"}}}},
    {"neighbours that nobody saw are a gap",
     [](World& w) { w.node(1).neighbours = Unknown{.text = "netlink: EPERM"}; },
     {},
     {"node1 net.neighbours"}},

    {"near miss: the peer's own MAC",
     [](World& w) {
       enter(w, mac_of_node0(w));
       dials_end(w, Outcome::timed_out);
     }},
    {"near miss: a router's MAC, which hands on", [](World& w) { enter(w, kNobodys); }},
    {"near miss: a router's MAC, and the peer drops what arrives",
     [](World& w) {
       enter(w, kNobodys);
       dials_end(w, Outcome::timed_out);
       for (Dial& dial : w.pair(1, 0).dials) dial.syn_arrived = true;
     }},
    {"near miss: learnt, and soon asked for again",
     [](World& w) {
       enter(w, kNobodys, "stale");
       dials_end(w, Outcome::timed_out);
     }},
    {"near miss: nobody tried it",
     [](World& w) {
       enter(w, kNobodys);
       w.cluster.pairs.clear();
     }},
};

TEST_CASE("net/neighbour") {
  run_cases("net/neighbour", cases);
}

}  // namespace
}  // namespace distdoctor::testing
