#include "checks/env/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

Launch& standalone(World& w, int least, int most) {
  Launch& launch = add_launch(w, said_launch(LauncherKind::torchrun, most));
  launch.nnodes_min = least;
  launch.standalone = true;
  return launch;
}

Verdict waits() {
  return {
      .code = "env-standalone-several-nodes",
      .severity = Severity::blocker,
      .certainty = Certainty::proved,
      .symptom = Symptom::hang,
      .says = "waits on its own machine for 3 nodes",
      .evidence = {"node0 torchrun (job.sh:5): --standalone with 3 nodes, not --nnodes 1, or an "
                   "endpoint that all nodes share; grep -n node job.sh"},
      .fixes = {"*: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"nothing was said", [](World&) {}, {}, {}, "no launch of the job is known"},
    {"three nodes", [](World& w) { standalone(w, 3, 3); }, {waits()}},
    {"three nodes, seen from one of them",
     [](World& w) {
       standalone(w, 3, 3);
       w.cluster.nodes.resize(1);
     },
     {waits()}},
    {"near miss: one node", [](World& w) { standalone(w, 1, 1); }},
    {"near miss: from one node on, it goes ahead alone", [](World& w) { standalone(w, 1, 3); }},
    {"near miss: with an endpoint", [](World& w) { standalone(w, 3, 3).standalone = false; }},
};

TEST_CASE("env/standalone") {
  run_cases("env/standalone", cases);
}

}  // namespace
}  // namespace distdoctor::testing
