#include "checks/env/jobs.h"
#include "support/check_cases.h"

#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// srun bash -c "torchrun --node_rank $SLURM_NODEID ..."
Launch& expanded(World& w, int srun_nodes = 4) {
  add_launch(w, said_launch(LauncherKind::srun, srun_nodes));
  Launch& launch = add_launch(w, said_launch(LauncherKind::torchrun, 4));
  launch.node_rank_text = "$SLURM_NODEID";
  launch.under_srun = true;
  launch.expanded_by_outer_shell = true;
  return launch;
}

Verdict finding() {
  return {
      .code = "env-node-rank-expanded",
      .severity = blocker,
      .certainty = likely,
      .symptom = Symptom::hang,
      .says = "job.sh:5: the shell above srun fills in $SLURM_NODEID",
      .evidence = {"node0 --node_rank (job.sh:5): $SLURM_NODEID, expanded once, not expanded on "
                   "each node, in single quotes; grep -n node job.sh"},
      .fixes = {"*: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"nothing was said", [](World&) {}, {}, {}, "no launch of the job is known"},
    {"in double quotes", [](World& w) { expanded(w); }, {finding()}},
    {"the nodes of srun are not known",
     [](World& w) {
       expanded(w);
       w.cluster.job.launches.front().nnodes_max = std::nullopt;
     },
     {finding()}},
    {"near miss: in single quotes", [](World& w) { expanded(w).expanded_by_outer_shell = false; }},
    {"near miss: c10d numbers the nodes itself",
     [](World& w) { expanded(w).rdzv_backend = "c10d"; }},
    {"near miss: srun for one node", [](World& w) { expanded(w, 1); }},
    {"near miss: srun for one task",
     [](World& w) {
       expanded(w);
       w.cluster.job.launches.front().tasks = 1;
     }},
    {"near miss: torchrun for one node", [](World& w) { expanded(w).nnodes_max = 1; }},
    {"no node",
     [](World& w) {
       expanded(w);
       w.cluster.nodes.clear();
     }},
};

TEST_CASE("env/node_rank_expanded") {
  run_cases("env/node_rank_expanded", cases);
}

}  // namespace
}  // namespace distdoctor::testing
