#include "checks/env/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Launch& in_batch(World& w, LauncherKind kind, int nodes = 4) {
  Launch& launch = add_launch(w, said_launch(kind, nodes));
  launch.in_batch_script = true;
  return launch;
}

Verdict first_node_only(const std::string& launcher = "torchrun") {
  return {.code = "env-torchrun-first-node-only",
          .severity = blocker,
          .certainty = likely,
          .symptom = Symptom::hang,
          .says = "job.sh:5 starts " + launcher + " without srun",
          .evidence = {"node0 " + launcher +
                       " (job.sh:5): no srun in front, not srun, once on each node; "
                       "grep -n node job.sh"},
          .fixes = {"*: (manual)"}};
}

Verdict perhaps(const std::string& launcher) {
  Verdict verdict = first_node_only(launcher);
  verdict.severity = notice;
  verdict.certainty = possible;
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"nothing was said", [](World&) {}, {}, {}, "no launch of the job is known"},
    {"torchrun in a batch script",
     [](World& w) { in_batch(w, LauncherKind::torchrun); },
     {first_node_only()}},
    {"the number of nodes is not known: said, no more",
     [](World& w) {
       Launch& launch = in_batch(w, LauncherKind::torchrun);
       launch.nnodes_min = launch.nnodes_max = std::nullopt;
     },
     {perhaps("torchrun")}},
    {"accelerate with a configuration file: it may be for one node",
     [](World& w) {
       Launch& launch = in_batch(w, LauncherKind::accelerate);
       launch.nnodes_min = launch.nnodes_max = std::nullopt;
     },
     {perhaps("accelerate")}},
    {"near miss: below srun",
     [](World& w) { in_batch(w, LauncherKind::torchrun).under_srun = true; }},
    {"near miss: below mpirun",
     [](World& w) {
       in_batch(w, LauncherKind::mpirun);
       in_batch(w, LauncherKind::torchrun);
     }},
    {"near miss: not in a batch script",
     [](World& w) { in_batch(w, LauncherKind::torchrun).in_batch_script = false; }},
    {"near miss: for one node", [](World& w) { in_batch(w, LauncherKind::torchrun, 1); }},
    {"near miss: standalone",
     [](World& w) { in_batch(w, LauncherKind::torchrun).standalone = true; }},
    {"near miss: deepspeed goes to the other nodes itself",
     [](World& w) { in_batch(w, LauncherKind::deepspeed); }},
    {"one node",
     [](World& w) {
       w.cluster.nodes.resize(1);
       in_batch(w, LauncherKind::torchrun);
     },
     {},
     {},
     "one node alone"},
};

TEST_CASE("env/torchrun_without_srun") {
  run_cases("env/torchrun_without_srun", cases);
}

}  // namespace
}  // namespace distdoctor::testing
