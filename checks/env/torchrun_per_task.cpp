// torchrun starts the ranks of a node, so srun starts it once a node and not once a task.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/meeting.h>
#include <distdoctor/views.h>

#include "launches.h"

#include <fmt/format.h>

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace env;

std::optional<int> tasks_of(const Launch& srun) {
  if (srun.tasks) return srun.tasks;
  if (!srun.tasks_per_node || !srun.nnodes_max) return std::nullopt;
  return *srun.tasks_per_node * *srun.nnodes_max;
}

void run(const Case& c, Judge& judge) {
  if (!any_launch(c, judge)) return;
  for (const Launch& launch : c.cluster.job.launches) {
    const Launch* srun = srun_above(c.cluster.job.launches, launch);
    if (!numbers_nodes(launch) || srun == nullptr || !launch.nnodes_max) continue;
    if (for_one_node(launch)) continue;  // each task is a job of its own, as in a sweep
    // As many torchruns as --nnodes says is what it waits for, several on one node or not.
    const auto tasks = tasks_of(*srun);
    if (!tasks || *tasks <= *launch.nnodes_max) continue;
    Finding finding =
        launch_finding("env-torchrun-per-task",
                       fmt::format("srun starts {} times torchrun, which is made for {} nodes",
                                   *tasks, *launch.nnodes_max));
    finding.certainty = Certainty::likely;
    add_launch(c, *srun, "tasks of srun", fmt::to_string(*tasks),
               fmt::format("{}, one a node", *launch.nnodes_max), finding);
    finding.fix = {by_hand(fmt::format(
        "srun --nodes={} --ntasks-per-node=1 ...: torchrun itself starts the processes of a node "
        "(--nproc_per_node)",
        *launch.nnodes_max))};
    judge.report(std::move(finding));
  }
}

constexpr Page kPage{
    .meaning =
        "srun starts torchrun once for each task, and there are more tasks than --nnodes. "
        "Several torchruns of one node claim the same ports, GPUs and ranks.",
    .confirm = "`pgrep -cf torchrun` on a node of the job: more than one.",
    .fix = "`srun --ntasks-per-node=1` for torchrun; --nproc_per_node gives the processes.",
    .verify = "`pgrep -cf torchrun` counts one on each node."};
constexpr std::string_view kCauses[] = {"env-node-rank-duplicate", "env-rank-duplicate",
                                        "rendezvous-port-in-use"};
constexpr Code kCodes[] = {{.id = "env-torchrun-per-task",
                            .fault_class = FaultClass::world_size_mismatch,
                            .worst = Severity::blocker,
                            .title = "torchrun is started once a task",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check env_torchrun_per_task{
    .title = "srun starts torchrun once a node", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
