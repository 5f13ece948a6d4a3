#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;

Verdict skew(Severity severity,
             const std::string& node,
             const std::string& says,
             const std::string& seen) {
  return {.code = "host-clock-skew",
          .severity = severity,
          .certainty = Certainty::proved,
          .symptom = severity == degraded ? Symptom::crash : Symptom::slow,
          .says = says,
          .blamed = {node},
          .evidence = {node + " clock: " + seen +
                       ", give or take 1 ms, not within 2.0 s (default); date +%s.%N; timedatectl; "
                       "chronyc tracking"},
          .fixes = {node + ": (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a clock ahead",
     [](World& w) { w.node(2).clock_offset_ms = 5003.0; },
     {skew(notice, "node2", "the clock of node2 is 5.0 s ahead of the others'", "+5.0 s")}},
    {"a clock behind",
     [](World& w) { w.node(1).clock_offset_ms = -60'000.0; },
     {skew(notice, "node1", "the clock of node1 is 60.0 s behind the others'", "-60.0 s")}},
    {"so wrong that others refuse it",
     [](World& w) { w.node(1).clock_offset_ms = 400'000.0; },
     {skew(degraded, "node1", "is 400.0 s ahead", "+400.0 s")}},
    {"near miss: just within the limit and the error",
     [](World& w) { w.node(2).clock_offset_ms = 2003.9; }},
    {"near miss: a slow round trip proves nothing",
     [](World& w) {
       w.node(2).clock_offset_ms = 5000.0;
       w.node(2).clock_error_ms = 4000.0;
     }},
    {"near miss: only the coordinator is wrong",
     [](World& w) {
       for (std::size_t i = 0; i < 4; ++i) w.node(i).clock_offset_ms = 9000.0;
     }},
    {"of two nodes the one far from the coordinator",
     [](World& w) {
       w.cluster.nodes.resize(2);
       w.node(0).clock_offset_ms = 0.0;
       w.node(1).clock_offset_ms = 5000.0;
     },
     {skew(notice, "node1", "the clock of node1 is 5.0 s ahead", "+5.0 s")}},
    {"one node has nobody to disagree with",
     [](World& w) {
       w.cluster.nodes.resize(1);
       w.node(0).clock_offset_ms = 5000.0;
     }},
    {"unseen clocks are gaps",
     [](World& w) {
       w.node(0).clock_offset_ms = Unknown{.text = "no answer"};
       w.node(1).clock_error_ms = Unknown{.text = "no answer"};
     },
     {},
     {"node0 clock_offset", "node1 clock_error"}},
};

TEST_CASE("host/clock") {
  run_cases("host/clock", cases);
}

}  // namespace
}  // namespace distdoctor::testing
