#include "checks/net/route_worlds.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void strict(World& w, std::size_t node, const char* link, int value = 1) {
  World::change(w.node(node).kernel,
                [&](KernelNet& kernel) { kernel.conf[link].rp_filter = value; });
}
// node answers the data network by its other link.
void answers_by_eth0(World& w, std::size_t node) {
  World::change(w.node(node).routes,
                [](std::vector<Route>& routes) { routes[1].interface = "eth0"; });
}

std::string line(const char* node, const char* source, const char* peer) {
  return std::string(node) + " net.ipv4.conf.eth1.rp_filter: 1 (strict); " + source + " (" + peer +
         ") comes in by eth1, the answer would leave by eth0, not one link both ways, or 2 "
         "(loose); sysctl "
         "net.ipv4.conf.all.rp_filter net.ipv4.conf.eth1.rp_filter; ip route get " +
         source;
}
Verdict drops(const char* node, const std::vector<std::string>& evidence) {
  return routing(
      "net-reverse-path",
      "drops what comes in by eth1: strict rp_filter, and its answers would leave by eth0", node,
      evidence, {std::string(node) + ": sysctl -w net.ipv4.conf.eth1.rp_filter=2"});
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"node0 would answer by its other link",
     [](World& w) {
       strict(w, 0, "all");
       answers_by_eth0(w, 0);
       unanswered(w, 1, 0);
       unanswered(w, 2, 0);
     },
     {drops("node0",
            {line("node0", "10.20.0.11", "node1"), line("node0", "10.20.0.12", "node2")})}},
    {"nobody saw the packets arrive: less sure",
     [](World& w) {
       strict(w, 0, "eth1");
       answers_by_eth0(w, 0);
       fail_data(w, 1, 0, {.seen = Seen::unwatched});
     },
     {[] {
       Verdict made = drops("node0", {line("node0", "10.20.0.11", "node1")});
       made.certainty = likely;
       return made;
     }()}},
    {"the answer is dropped where it comes back",
     [](World& w) {
       strict(w, 1, "all");
       unanswered(w, 1, 0);
       each_dial(w, 1, 0, [](Dial& dial) { dial.route.interface = "eth0"; });
     },
     {drops("node1", {line("node1", "10.20.0.10", "node0")})}},

    {"near miss: loose",
     [](World& w) {
       strict(w, 0, "all", 2);
       strict(w, 0, "eth1");
       answers_by_eth0(w, 0);
       unanswered(w, 1, 0);
     }},
    {"near miss: off",
     [](World& w) {
       answers_by_eth0(w, 0);
       unanswered(w, 1, 0);
     }},
    {"near miss: one link both ways",
     [](World& w) {
       strict(w, 0, "all");
       unanswered(w, 1, 0);
     }},
    {"near miss: odd, but it works",
     [](World& w) {
       strict(w, 0, "all");
       answers_by_eth0(w, 0);
     }},
    {"what was not read is a gap",
     [](World& w) { w.node(2).rules = Unknown{.kind = Why::denied}; },
     {},
     {"node2 net.rules"}},
};

TEST_CASE("net/reverse_path") {
  run_cases("net/reverse_path", cases);
}

}  // namespace
}  // namespace distdoctor::testing
