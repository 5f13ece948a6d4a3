// The number of a node is filled in on that node, not once by the shell above srun.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "launches.h"

#include <fmt/format.h>

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace env;

// With c10d torchrun numbers the nodes itself.
bool matters(const Launch& launch) {
  const bool fixed = launch.rdzv_backend.empty() || launch.rdzv_backend == "static";
  return launch.expanded_by_outer_shell && fixed && launch.nnodes_max.value_or(2) > 1;
}

// One node, or one task, cannot get another one's number.
bool several_nodes(const std::vector<Launch>& launches, const Launch& launch) {
  const Launch* srun = srun_above(launches, launch);
  return srun == nullptr || (srun->nnodes_max.value_or(2) > 1 && srun->tasks.value_or(2) > 1);
}

void run(const Case& c, Judge& judge) {
  if (!any_launch(c, judge)) return;
  const auto& launches = c.cluster.job.launches;
  for (const Launch& launch : launches) {
    if (!matters(launch) || !several_nodes(launches, launch)) continue;
    Finding finding = launch_finding(
        "env-node-rank-expanded",
        fmt::format("{}: the shell above srun fills in {}, so that every node gets the same number",
                    launch.origin.where, launch.node_rank_text));
    finding.certainty = Certainty::likely;
    add_launch(c, launch, "--node_rank", fmt::format("{}, expanded once", launch.node_rank_text),
               "expanded on each node, in single quotes", finding);
    finding.fix = {by_hand(fmt::format(
        "srun --ntasks-per-node=1 bash -c 'torchrun ... --node_rank {} ...': in single quotes, or "
        "with a backslash before the dollar sign",
        launch.node_rank_text))};
    judge.report(std::move(finding));
  }
}

constexpr Page kPage{
    .meaning =
        "A variable that Slurm sets anew for each task stands where the batch script's own "
        "shell expands it, once. It is 0 there, so that every node claims to be node 0.",
    .confirm = "`pgrep -af node_rank` on each node of the job: the same number everywhere.",
    .fix =
        "Write it in single quotes, `srun bash -c 'torchrun ... --node_rank $SLURM_NODEID ...'`, "
        "or escape the dollar sign in double quotes.",
    .verify = "`pgrep -af node_rank` shows another number on each node."};
constexpr std::string_view kCauses[] = {"env-node-rank-duplicate", "env-rank-duplicate",
                                        "env-rank-missing", "rendezvous-not-up"};
constexpr Code kCodes[] = {{.id = "env-node-rank-expanded",
                            .fault_class = FaultClass::rank_misconfig,
                            .worst = Severity::blocker,
                            .title = "The node's number is filled in once for all nodes",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check env_node_rank_expanded{
    .title = "Each node fills in its own number", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
