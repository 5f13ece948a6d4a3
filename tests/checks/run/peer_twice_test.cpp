#include "support/check_cases.h"

#include <vector>

namespace distdoctor::testing {
namespace {

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"two names of one machine",
     [](World& w) { w.node(2).same_as = "node1"; },
     {{.code = "run-peer-twice",
       .severity = Severity::notice,
       .certainty = Certainty::proved,
       .symptom = Symptom::slow,
       .says = "node1 and node2 are one machine",
       .blamed = {"node1", "node2"},
       .evidence = {"node2 boot id and network namespace: those of node1, not its own; cat "
                    "/proc/sys/kernel/random/boot_id; readlink /proc/self/ns/net"},
       .fixes = {"node2: (manual)"}}}},
    {"near miss: a node that was not reached may be anybody",
     [](World& w) {
       w.node(2).same_as = "node1";
       w.node(2).reached = false;
     },
     {},
     {"node2 node"}},
};

TEST_CASE("run/peer_twice") {
  run_cases("run/peer_twice", cases);
}

}  // namespace
}  // namespace distdoctor::testing
