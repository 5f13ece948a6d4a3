#include "checks/env/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Launch& below_srun(World& w, int torchrun_nodes = 4) {
  add_launch(w, said_launch(LauncherKind::srun, 4));
  Launch& launch = add_launch(w, said_launch(LauncherKind::torchrun, torchrun_nodes));
  launch.under_srun = true;
  return w.cluster.job.launches.front();
}

Verdict per_task(const std::string& tasks) {
  return {.code = "env-torchrun-per-task",
          .severity = blocker,
          .certainty = likely,
          .symptom = Symptom::hang,
          .says = "srun starts " + tasks + " times torchrun, which is made for 4 nodes",
          .evidence = {"node0 tasks of srun (job.sh:5): " + tasks +
                       ", not 4, one a node; grep -n srun job.sh"},
          .fixes = {"*: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"nothing was said", [](World&) {}, {}, {}, "no launch of the job is known"},
    {"eight tasks a node", [](World& w) { below_srun(w).tasks_per_node = 8; }, {per_task("32")}},
    {"one task more than nodes", [](World& w) { below_srun(w).tasks = 5; }, {per_task("5")}},
    {"near miss: one task a node", [](World& w) { below_srun(w).tasks_per_node = 1; }},
    {"near miss: as many torchruns as --nnodes says, several on one node",
     [](World& w) { below_srun(w, 32).tasks_per_node = 8; }},
    {"near miss: a sweep of jobs for one node each",
     [](World& w) { below_srun(w, 1).tasks_per_node = 8; }},
    {"near miss: a sweep of standalone jobs",
     [](World& w) {
       below_srun(w).tasks_per_node = 8;
       w.cluster.job.launches.back().standalone = true;
     }},
    {"near miss: the tasks are not known", [](World& w) { below_srun(w); }},
    {"near miss: python is started once a task",
     [](World& w) {
       below_srun(w).tasks_per_node = 8;
       w.cluster.job.launches.back().kind = LauncherKind::python;
     }},
    {"near miss: the srun before this one",
     [](World& w) {
       below_srun(w).tasks_per_node = 8;
       w.cluster.job.launches.back().kind = LauncherKind::python;
       add_launch(w, said_launch(LauncherKind::srun, 4)).tasks_per_node = 1;
       add_launch(w, said_launch(LauncherKind::torchrun, 4)).under_srun = true;
     }},
    {"near miss: not below srun",
     [](World& w) {
       below_srun(w).tasks_per_node = 8;
       w.cluster.job.launches.back().under_srun = false;
     }},
};

TEST_CASE("env/torchrun_per_task") {
  run_cases("env/torchrun_per_task", cases);
}

}  // namespace
}  // namespace distdoctor::testing
