#include "checks/net/path_worlds.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// eth1 of node0 and node1 have one MAC.
void one_mac(World& w) {
  for (const std::size_t node : {0U, 1U}) {
    w.change_link(node, "eth1", [](Link& link) { link.mac = "02:00:00:00:00:07"; });
  }
}
void silence(World& w) {
  fail_data(w, 0, 1, {});
  fail_data(w, 1, 0, {});
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"two nodes with one MAC, and silence between them",
     [](World& w) {
       one_mac(w);
       silence(w);
     },
     {{.code = "net-duplicate-mac",
       .severity = blocker,
       .certainty = likely,
       .symptom = Symptom::hang,
       .says = "eth1 of node0 and eth1 of node1 have one MAC, 02:00:00:00:00:07",
       .blamed = {"node0", "node1"},
       .evidence = {"node0 net.eth1.mac: 02:00:00:00:00:07, not one of its own; ip link show dev "
                    "eth1",
                    "node1 net.eth1.mac: 02:00:00:00:00:07, not one of its own; ip link show dev "
                    "eth1"},
       .fixes = {"node1: (manual)"}}}},
    {"near miss: they reach each other, so something keeps them apart", one_mac},
    {"near miss: one way they reach each other, so that it is something else",
     [](World& w) {
       one_mac(w);
       fail_data(w, 0, 1, {});
     }},
    {"near miss: ipvlan of one card",
     [](World& w) {
       one_mac(w);
       silence(w);
       w.change_link(1, "eth1", [](Link& link) { link.kind = LinkKind::ipvlan; });
     }},
    {"near miss: another network",
     [](World& w) {
       one_mac(w);
       silence(w);
       w.change_link(1, "eth1", [](Link& link) { link.addresses[0].prefix = 32; });
     }},
    {"near miss: silence, and each has its own",
     [](World& w) {
       one_mac(w);
       silence(w);
       w.change_link(1, "eth1", [](Link& link) { link.mac = "02:00:00:00:00:08"; });
     }},
    {"links unseen",
     [](World& w) { w.node(2).links = Unknown{.kind = Why::denied}; },
     {},
     {"node2 net.links"}},
};

TEST_CASE("net/duplicate_mac") {
  run_cases("net/duplicate_mac", cases);
}

}  // namespace
}  // namespace distdoctor::testing
