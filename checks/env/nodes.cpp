// The launch calls agree on how many nodes there are, and each node has a number of its own.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/meeting.h>
#include <distdoctor/views.h>

#include "launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace env;

// c10d numbers the nodes itself, and a single node needs no number.
bool fixed_node_rank(const Launch& launch) {
  const bool fixed = launch.rdzv_backend.empty() || launch.rdzv_backend == "static";
  return numbers_nodes(launch) && fixed && launch.node_rank && !for_one_node(launch);
}

std::string user_of(const NodeFacts& node, const Launch& launch) {
  if (!node.processes.known()) return "";
  const auto found = std::ranges::find_if(*node.processes, [&](const TrainingProcess& process) {
    return launch.origin.where == fmt::format("pid {}", process.pid);
  });
  return found == node.processes->end() ? "" : fmt::to_string(found->uid);
}

std::string master_of(const Case& c, const NodeFacts& node, const Launch& launch) {
  if (launch.master_addr.empty()) return launch.rdzv_endpoint;
  return leads(c.cluster.nodes, node, launch.master_addr).to + " " + launch.rdzv_endpoint;
}

// Launch calls that run on nodes, each node once for each job.
std::map<std::string, std::vector<const Launch*>> live_launches(const Case& c) {
  std::map<std::string, std::vector<const Launch*>> jobs;
  for (const Launch& launch : c.cluster.job.launches) {
    const bool live = launch.origin.source == Source::process && numbers_nodes(launch);
    const NodeFacts* node = find_node(c.cluster, launch.origin.node);
    if (!live || node == nullptr || for_one_node(launch)) continue;
    jobs[fmt::format("{} {} {} {} {}", user_of(*node, launch), launch.script, launch.rdzv_id,
                     master_of(c, *node, launch), launch.master_port)]
        .push_back(&launch);
  }
  return jobs;
}

void judge_node_ranks(const Case& c, Judge& judge) {
  for (const auto& [job, launches] : live_launches(c)) {
    std::map<int, std::vector<const Launch*>> by_rank;
    for (const Launch* launch : launches) {
      if (fixed_node_rank(*launch)) by_rank[*launch->node_rank].push_back(launch);
    }
    for (const auto& [rank, same] : by_rank) {
      const bool two_nodes = std::ranges::any_of(same, [&](const Launch* launch) {
        return launch->origin.node != same.front()->origin.node;
      });
      if (!two_nodes) continue;
      Finding finding =
          launch_finding("env-node-rank-duplicate",
                         fmt::format("{} nodes say that they are node {}", same.size(), rank));
      for (const Launch* launch : same) {
        add_launch(c, *launch, "--node_rank", fmt::to_string(rank), "a number of its own", finding);
      }
      finding.fix = {
          by_hand("--node_rank counts the nodes from 0, each once: 0 on the node that "
                  "--master_addr names")};
      judge.report(std::move(finding));
    }
  }
}

// One number, written out, for all the nodes of an srun.
void judge_node_rank_of_srun(const Case& c, Judge& judge) {
  for (const Launch& launch : c.cluster.job.launches) {
    const Launch* srun = srun_above(c.cluster.job.launches, launch);
    const bool several = srun != nullptr && srun->nnodes_max.value_or(1) > 1;
    if (!fixed_node_rank(launch) || !several || launch.nnodes_max.value_or(1) < 2) continue;
    if (launch.origin.source == Source::process) continue;  // there srun has put in the number
    Finding finding = launch_finding(
        "env-node-rank-duplicate",
        fmt::format("srun starts torchrun with --node_rank {} on every node", *launch.node_rank));
    add_launch(c, launch, "--node_rank", fmt::to_string(*launch.node_rank),
               "$SLURM_NODEID in single quotes", finding);
    finding.fix = {
        by_hand("srun bash -c 'torchrun ... --node_rank $SLURM_NODEID ...': in single "
                "quotes each node fills in its own number")};
    judge.report(std::move(finding));
  }
}

void judge_nodes_between(const Case& c, Judge& judge) {
  for (const auto& [job, launches] : live_launches(c)) {
    std::vector<const Launch*> with;
    std::ranges::copy_if(launches, std::back_inserter(with),
                         [](const Launch* launch) { return launch->nnodes_max.has_value(); });
    const auto nodes = [](const Launch* launch) { return *launch->nnodes_max; };
    const auto usual = usual_value(with, nodes);
    if (!usual) continue;
    const auto odd = odd_ones_out(with, usual->value, nodes);
    if (odd.empty()) continue;
    Finding finding = launch_finding(
        "env-nnodes-differs",
        fmt::format("nodes of one job disagree about --nnodes: {} of {} do not say {}", odd.size(),
                    with.size(), usual->value));
    for (const Launch* launch : odd) {
      add_launch(c, *launch, "--nnodes", fmt::to_string(*launch->nnodes_max),
                 fmt::to_string(usual->value), finding);
    }
    finding.fix = {by_hand("start torchrun with one --nnodes everywhere")};
    judge.report(std::move(finding));
    return;
  }
}

Finding numbers_differ(const Launch& launch, int peers) {
  if (for_one_node(launch)) {
    Finding finding = launch_finding(
        "env-nnodes-differs",
        fmt::format("the launch line makes each of {} nodes a job of its own", peers));
    finding.severity = Severity::degraded;
    finding.certainty = Certainty::possible;
    finding.symptom = Symptom::wrong_result;
    return finding;
  }
  const int least = *launch.nnodes_min;
  Finding finding = launch_finding(
      "env-nnodes-differs",
      peers < least
          ? fmt::format("the launch line is for {} nodes; {} of them were named", least, peers)
          : fmt::format("the launch line is for {} nodes, but {} are named", *launch.nnodes_max,
                        peers));
  finding.certainty = Certainty::likely;
  finding.severity = Severity::notice;  // to look at a part of a job, or of a cluster, is no fault
  return finding;
}

// The launch line, or a script, against the nodes that we were told of.
void judge_nodes_named(const Case& c, Judge& judge) {
  const int peers = static_cast<int>(c.cluster.job.peers.size());
  for (const Launch& launch : c.cluster.job.launches) {
    if (!numbers_nodes(launch) || launch.standalone || peers < 2) continue;
    if (launch.origin.source == Source::process || !launch.nnodes_min || !launch.nnodes_max)
      continue;
    if (*launch.nnodes_min <= peers && peers <= *launch.nnodes_max) continue;
    Finding finding = numbers_differ(launch, peers);
    add_launch(c, launch, "--nnodes", fmt::to_string(*launch.nnodes_max),
               fmt::format("{}, as many as --peers names", peers), finding);
    finding.fix = {
        by_hand(fmt::format("--nnodes {} if these are all nodes of the job; else name "
                            "the others in --peers too",
                            peers))};
    judge.report(std::move(finding));
  }
}

void run(const Case& c, Judge& judge) {
  if (!any_launch(c, judge)) return;
  judge_node_ranks(c, judge);
  judge_node_rank_of_srun(c, judge);
  judge_nodes_between(c, judge);
  judge_nodes_named(c, judge);
}

constexpr std::string_view kMissing[] = {"env-rank-missing", "rendezvous-not-up"};
constexpr std::string_view kNodeRank[] = {"env-rank-duplicate", "env-rank-missing",
                                          "rendezvous-not-up"};

constexpr Page kNodesPage{
    .meaning =
        "The number of nodes differs: between the nodes of a job, or between the launch "
        "line and the nodes that were named. torchrun waits for nodes that never come.",
    .confirm = "`pgrep -af nnodes` on every node.",
    .fix = "Start torchrun with the same --nnodes on as many nodes.",
    .verify = "`pgrep -af nnodes` shows one number on as many nodes."};
constexpr Page kNodeRankPage{
    .meaning =
        "Two nodes start torchrun with the same --node_rank. Both claim the same ranks; "
        "with static rendezvous the job hangs without a word.",
    .confirm = "`pgrep -af node_rank` on every node.",
    .fix =
        "--node_rank 0 on the node of --master_addr, 1 on the next, and so on. Below srun: "
        "`srun bash -c 'torchrun ... --node_rank $SLURM_NODEID ...'`, in single quotes.",
    .verify = "`pgrep -af node_rank` shows another number on each node."};

constexpr Code kCodes[] = {
    {.id = "env-nnodes-differs",
     .fault_class = FaultClass::world_size_mismatch,
     .worst = Severity::blocker,
     .title = "The number of nodes differs",
     .causes = kMissing,
     .page = kNodesPage},
    {.id = "env-node-rank-duplicate",
     .fault_class = FaultClass::rank_misconfig,
     .worst = Severity::blocker,
     .title = "Two nodes have the same node rank",
     .causes = kNodeRank,
     .page = kNodeRankPage},
};

}  // namespace

extern const Check env_nodes{.title = "Launch calls number the nodes", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
