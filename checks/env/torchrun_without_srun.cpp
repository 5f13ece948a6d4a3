// A batch script starts torchrun on every node of the job, not on the first one only.
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

// mpirun or ssh around it would start it elsewhere too.
bool under_mpirun(const std::vector<Launch>& launches, const Launch& launch) {
  return std::ranges::any_of(launches, [&](const Launch& other) {
    return other.kind == LauncherKind::mpirun && other.origin == launch.origin;
  });
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  if (!any_launch(c, judge)) return;
  for (const Launch& launch : c.cluster.job.launches) {
    if (!numbers_nodes(launch) || !launch.in_batch_script || launch.under_srun) continue;
    if (for_one_node(launch)) continue;
    if (under_mpirun(c.cluster.job.launches, launch)) continue;
    Finding finding = launch_finding(
        "env-torchrun-first-node-only",
        fmt::format("{} starts {} without srun: on the first node only, and there it waits",
                    launch.origin.where, slug(launch.kind)));
    finding.certainty = Certainty::likely;
    if (!launch.nnodes_max) {  // it may be for one node
      finding.severity = Severity::notice;
      finding.certainty = Certainty::possible;
    }
    add_launch(c, launch, std::string(slug(launch.kind)), "no srun in front",
               "srun, once on each node", finding);
    finding.fix = {
        by_hand("put `srun --ntasks-per-node=1 bash -c '...'` around it, with "
                "--node_rank $SLURM_NODEID inside the single quotes")};
    judge.report(std::move(finding));
  }
}

constexpr Page kPage{
    .meaning =
        "Slurm runs a batch script on the first node of the job only. torchrun in it is "
        "started there alone and waits for the other nodes, without a word.",
    .confirm = "`pgrep -af torchrun` on the second node of the job: nothing.",
    .fix =
        "`srun --ntasks-per-node=1 bash -c 'torchrun ... --node_rank $SLURM_NODEID ...'` in the "
        "script.",
    .verify = "`pgrep -af torchrun` shows one on each node."};
constexpr std::string_view kCauses[] = {"env-rank-missing", "rendezvous-not-up"};
constexpr Code kCodes[] = {{.id = "env-torchrun-first-node-only",
                            .fault_class = FaultClass::rank_missing,
                            .worst = Severity::blocker,
                            .title = "torchrun is started on the first node only",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check env_torchrun_without_srun{
    .title = "The script starts torchrun on every node", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
