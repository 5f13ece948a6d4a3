#include "exam/bisection.h"

#include <distdoctor/gpus.h>
#include <distdoctor/run_ending.h>

#include "base/text.h"
#include "bisect/bisect.h"
#include "exam/traffic.h"
#include "probe/plan_wire.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>
#include <variant>

namespace distdoctor::exam {
namespace {

namespace planner = distdoctor::bisect;

constexpr std::chrono::seconds kToListen{5};
constexpr int kBudgetShare = 3;  // one part of so many is for the wires, at most
constexpr const char* kUsedUp = "the budget was used up";

bool was_cut(const ClusterFacts& cluster) {
  return !cluster.experiments.empty() &&
         std::ranges::any_of(cluster.experiments.back().ranks, [](const RankRun& rank) {
           return rank.outcome == RunOutcome::not_run && rank.error == kCutByBudget;
         });
}

RunBackend backend_of(const ClusterFacts& cluster, const Bisection& wanted) {
  const bool gpus = std::ranges::any_of(cluster.nodes, has_gpus);
  return wanted.backend.value_or(gpus ? RunBackend::nccl : RunBackend::gloo);
}

planner::Options planned(const ClusterFacts& cluster, const Bisection& wanted) {
  return {.backend = backend_of(cluster, wanted),
          .places = planner::places_of(cluster, wanted.ranks_per_node),
          .max_runs = wanted.max_runs,
          .only = wanted.only,
          .sizes = wanted.sizes};
}

std::string line_of(const NodeFacts& node, const TrainingProcess& process) {
  return printable(node.host + ": pid " + std::to_string(process.pid) + " (" +
                   shortened(join(process.argv, " "), 60) + ")");
}

void add_gpu_users(const NodeFacts& node, std::vector<std::string>& users) {
  const bool unseen = node.gpu.known() && !node.gpu->nvidia_driver.empty() && !node.nvml.known();
  if (unseen) users.push_back(printable(node.host) + ": who is on its GPUs could not be seen");
  if (!node.nvml.known()) return;
  for (const NvmlGpu& gpu : node.nvml->gpus) {
    for (const NvmlProcess& process : gpu.processes) {
      users.push_back(node.host + ": pid " + std::to_string(process.pid) + " on GPU " +
                      std::to_string(gpu.index));
    }
  }
}

// Once a run has shown that the data gets through, and how: what the wires below it carry.
void measure_wires_below(const Experiment& baseline,
                         fleet::Fleet& fleet,
                         const TrafficLimits& limits,
                         ClusterFacts& cluster) {
  const auto rounds = probe::plan_wires(cluster, baseline, {}, std::random_device{}());
  const auto part = limits.deadline.remaining() / kBudgetShare;
  measure_wires(rounds, fleet,
                {.deadline = Deadline::after(part),
                 .timeout = limits.timeout,
                 .interrupted = limits.interrupted},
                cluster);
}

// Whether the kernel says that it killed a rank: its log from before the runs cannot tell.
void read_kernel_logs_again(const Experiment& run,
                            fleet::Fleet& fleet,
                            Deadline deadline,
                            ClusterFacts& cluster) {
  std::vector<NodeFacts*> nodes;
  std::vector<fleet::Ask> asks;
  for (NodeFacts& node : cluster.nodes) {
    const bool killed = std::ranges::any_of(run.ranks, [&](const RankRun& rank) {
      return rank.place.node == node.host && killed_from_outside(rank);
    });
    if (!killed) continue;
    nodes.push_back(&node);
    asks.push_back({.host = node.host, .request = CollectRequest{.collectors = {"kernel_log"}}});
  }
  if (asks.empty()) return;
  const auto answers = fleet.ask(asks, deadline.capped(kToListen));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto* seen = answers[i].known() ? std::get_if<NodeFacts>(&*answers[i]) : nullptr;
    if (seen != nullptr && seen->kernel_log.known()) nodes[i]->kernel_log = seen->kernel_log;
  }
}

}  // namespace

// Of Gloo only the network is shared: a job in a network namespace of its own does not count.
std::vector<std::string> busy_with(const ClusterFacts& cluster, const Bisection& wanted) {
  const bool gpus = backend_of(cluster, wanted) == RunBackend::nccl;
  std::vector<std::string> users;
  for (const NodeFacts& node : cluster.nodes) {
    if (node.reached && !node.processes.known()) {
      users.push_back(printable(node.host) + ": its processes could not be seen");
    }
    if (node.processes.known()) {
      for (const TrainingProcess& process : *node.processes) {
        const bool counts = process.role != ProcessRole::launcher && (gpus || process.our_network);
        if (counts) users.push_back(line_of(node, process));
      }
    }
    if (gpus) add_gpu_users(node, users);
  }
  return users;
}

Result<std::vector<Layer>> read_layers(std::string_view text) {
  auto layers = planner::parse_layers(text);
  if (!layers) {
    return failure("read --only '" + std::string(text) + "'",
                   "not all of these are layers, such as p2p, shm or net");
  }
  return *std::move(layers);
}

std::vector<std::string> tree_of(const ClusterFacts& cluster, const Bisection& wanted) {
  const auto options = planned(cluster, wanted);
  auto lines = planner::tree(cluster, options);
  const auto other_node = [&](const RunPlace& place) {
    return place.node != options.places.front().node;
  };
  if (std::ranges::any_of(options.places, other_node)) {
    const probe::WireLimits wires;
    lines.push_back(
        "Between nodes over TCP, after the first run: plain TCP to each neighbour and back, " +
        std::to_string(wires.speed_ms) + " ms by one stream and by " +
        std::to_string(wires.streams) + ", one path of a node at a time.");
  }
  return lines;
}

std::string bisect(const Bisection& wanted,
                   fleet::Fleet& fleet,
                   Deadline deadline,
                   const std::atomic<bool>* interrupted,
                   ClusterFacts& cluster) {
  const auto options = planned(cluster, wanted);
  const RunLimits limits{
      .deadline = deadline, .stage = wanted.stage, .nccl_library = wanted.nccl_library};
  while (true) {
    auto step = planner::next(cluster, options);
    if (auto* found = std::get_if<Isolation>(&step)) {
      cluster.isolations.push_back(std::move(*found));
      return "";
    }
    if (const auto* none = std::get_if<planner::Inconclusive>(&step)) {
      return was_cut(cluster) ? kUsedUp : none->why;
    }
    auto* run = std::get_if<Experiment>(&step);
    if (run == nullptr) return "";
    if (interrupted != nullptr && interrupted->load()) return "it was interrupted";
    if (deadline.expired()) return kUsedUp;
    if (wanted.watch) wanted.watch(*run, false);
    run_experiment(*run, cluster, fleet, limits);
    if (wanted.watch) wanted.watch(*run, true);
    read_kernel_logs_again(*run, fleet, deadline, cluster);
    cluster.experiments.push_back(std::move(*run));
    if (cluster.experiments.size() > 1) continue;
    measure_wires_below(cluster.experiments.front(), fleet,
                        {.deadline = deadline, .timeout = kToListen, .interrupted = interrupted},
                        cluster);
  }
}

void isolate_again(ClusterFacts& cluster) {
  if (cluster.experiments.empty()) return;
  planner::Options options{.backend = cluster.experiments.front().backend};
  for (const RankRun& rank : cluster.experiments.front().ranks) {
    options.places.push_back(rank.place);
  }
  options.max_runs = static_cast<int>(cluster.experiments.size());
  auto step = planner::next(cluster, options);
  if (auto* found = std::get_if<Isolation>(&step)) cluster.isolations = {std::move(*found)};
}

}  // namespace distdoctor::exam
