#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

Verdict notice_of(const std::string& code, const std::string& says, const std::string& row) {
  return {.code = code,
          .severity = Severity::notice,
          .certainty = Certainty::proved,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = {"node2"},
          .evidence = {row},
          .fixes = {"node2: (manual)"}};
}

const Unknown kLate{.kind = Why::timed_out, .text = "no answer within 5 s"};

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"another version",
     [](World& w) { w.node(2).version = "0.0.9"; },
     {notice_of("run-agent-version",
                "node2 runs distdoctor 0.0.9, we are 0.1.0",
                "node2 agent version: 0.0.9, not 0.1.0; distdoctor --version")}},
    {"near miss: a recorded node without a version", [](World& w) { w.node(2).version = ""; }},
    {"near miss: a coordinator without a version", [](World& w) { w.cluster.version = ""; }},
    {"two collectors were late",
     [](World& w) {
       w.node(2).links = kLate;
       w.node(2).shm = kLate;
     },
     {notice_of("run-agent-timed-out",
                "node2 did not answer in time about links, shm",
                "node2 links, shm: no answer before the deadline, not an answer; uptime; ps -eo "
                "pid,stat,wchan:20,args | grep ' D'")}},
    {"near miss: refused is not late",
     [](World& w) { w.node(2).links = Unknown{.kind = Why::denied, .text = "EPERM"}; }},
    {"near miss: a node that was not reached is the run's gap",
     [](World& w) {
       w.node(2).reached = false;
       w.node(2).version = "";
       w.node(2).links = kLate;
     }},
};

TEST_CASE("run/agent") {
  run_cases("run/agent", cases);
}

}  // namespace
}  // namespace distdoctor::testing
