// --standalone is for one node: each torchrun opens a rendezvous of its own.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/meeting.h>
#include <distdoctor/views.h>

#include "launches.h"

#include <fmt/format.h>

namespace distdoctor::checks {
namespace {

using namespace env;

// torch/distributed/run.py: it replaces the endpoint by localhost, and leaves --nnodes as it is.
bool waits_for_nobody(const Launch& launch) {
  return launch.kind == LauncherKind::torchrun && launch.standalone &&
         launch.nnodes_min.value_or(1) > 1;
}

void run(const Case& c, Judge& judge) {
  if (!any_launch(c, judge)) return;
  for (const Launch& launch : c.cluster.job.launches) {
    if (!waits_for_nobody(launch)) continue;
    const int nodes = *launch.nnodes_min;
    Finding finding = launch_finding(
        "env-standalone-several-nodes",
        fmt::format("torchrun --standalone waits on its own machine for {} nodes, which cannot "
                    "find it there",
                    nodes));
    add_launch(c, launch, "torchrun", fmt::format("--standalone with {} nodes", nodes),
               "--nnodes 1, or an endpoint that all nodes share", finding);
    finding.fix = {
        by_hand(fmt::format("for one node: --nnodes 1; for {}: without --standalone, with "
                            "--rdzv_backend c10d --rdzv_endpoint HOST:29400 --rdzv_id WORD",
                            nodes))};
    judge.report(std::move(finding));
  }
}

constexpr Page kPage{
    .meaning =
        "With --standalone torchrun opens a store at localhost and ignores any endpoint, but still "
        "waits there for as many nodes as --nnodes says. Each of them waits at its own; after ten "
        "minutes or so: `RendezvousTimeoutError`.",
    .confirm = "The launch line has both --standalone and --nnodes with 2 or more.",
    .fix =
        "Leave --standalone out, and give all nodes the same --rdzv_endpoint and --rdzv_id; or ask "
        "for one node.",
    .verify = "Each rank prints its number within seconds of the last node's start."};
constexpr Code kCodes[] = {{.id = "env-standalone-several-nodes",
                            .fault_class = FaultClass::world_size_mismatch,
                            .worst = Severity::blocker,
                            .title = "torchrun --standalone is told of several nodes",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check env_standalone{
    .title = "--standalone is for one node", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
