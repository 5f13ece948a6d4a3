// Which processes belong to the job, and which node rank 0 is on. Look-ups, no judgement.
#pragma once

#include <distdoctor/setting_text.h>

#include "where.h"

#include <iterator>
#include <map>
#include <set>

namespace distdoctor::checks {

inline std::string environ_command(int pid, std::string_view name) {
  return fmt::format("tr '\\0' '\\n' < /proc/{}/environ | grep ^{}=", pid, name);
}

// To see the launcher call again.
inline std::string launch_command(const Launch& launch) {
  const std::string& where = launch.origin.where;
  if (const auto pid = pid_in(where)) return fmt::format("tr '\\0' ' ' < /proc/{}/cmdline", *pid);
  const auto colon = where.rfind(':');
  if (colon == std::string::npos || colon == 0) return "history | grep torchrun";
  return "grep -n torchrun " + shell_quote(where.substr(0, colon));
}

struct Rank {
  const NodeFacts* node;
  const TrainingProcess* process;
};

// The workers that meet at this port.
inline std::vector<Rank> ranks_at(const ClusterFacts& cluster, std::uint16_t port) {
  std::vector<Rank> ranks;
  for (const NodeFacts& node : cluster.nodes) {
    if (!node.processes.known()) continue;
    for (const TrainingProcess& process : *node.processes) {
      const bool worker = process.role == ProcessRole::worker && process.our_network;
      const bool at_port = variable(process, "MASTER_PORT") == fmt::to_string(port);
      if (worker && at_port) ranks.push_back({&node, &process});
    }
  }
  return ranks;
}

// Ranks that meet at a place, by the place: a peer's name, else an address.
inline std::map<std::string, std::vector<Rank>> by_place(const ClusterFacts& cluster,
                                                         const std::vector<Rank>& ranks) {
  std::map<std::string, std::vector<Rank>> places;
  for (const Rank& rank : ranks) {
    const auto master = variable(*rank.process, "MASTER_ADDR");
    places[master ? leads(cluster.nodes, *rank.node, *master).to : ""].push_back(rank);
  }
  return places;
}

inline bool whole(const std::vector<Rank>& ranks) {
  std::set<std::string> numbers;
  for (const Rank& rank : ranks) numbers.insert(variable(*rank.process, "RANK").value_or(""));
  return fmt::to_string(numbers.size()) == variable(*ranks.front().process, "WORLD_SIZE");
}

// A job with all its ranks that meets at another peer, at the same customary port, is another one;
// so is one for a single node.
inline std::vector<Rank> ranks_of_the_job(const Case& c) {
  const Master* master = master_of(c);
  if (master == nullptr || !master->port) return {};
  auto ranks = ranks_at(c.cluster, *master->port);
  if (c.cluster.nodes.size() < 2) return ranks;
  std::erase_if(ranks, [](const Rank& rank) { return alone_on_its_node(*rank.process); });
  std::vector<Rank> of_the_job;
  for (const auto& [place, part] : by_place(c.cluster, ranks)) {
    const bool elsewhere =
        !master->node.empty() && place != master->node && find_node(c.cluster, place) != nullptr;
    if (!elsewhere || !whole(part)) std::ranges::copy(part, std::back_inserter(of_the_job));
  }
  return of_the_job;
}

// These have a launcher for as long as they live. Who sets RANK by hand may have started this one
// a moment ago, from a shell that has ended.
inline bool launcher_must_live(const TrainingProcess& process) {
  return variable(process, "TORCHELASTIC_RUN_ID") || variable(process, "SLURM_PROCID") ||
         variable(process, "OMPI_COMM_WORLD_RANK");
}

constexpr double kStartOfAJobS = 600;  // as long as one may take to start the other nodes by hand

// A process that its launcher left behind, alone of its job: a rest of an earlier one.
inline bool left_over(const Case& c, const Rank& rank) {
  const TrainingProcess& process = *rank.process;
  const bool same_user = rank.node->identity.known() && rank.node->identity->uid == process.uid;
  if (!same_user || !process.orphan || process.has_established_peer) return false;
  if (!launcher_must_live(process) && process.age_s < kStartOfAJobS) return false;
  return std::ranges::none_of(ranks_of_the_job(c), [&](const Rank& other) {
    return variable(*other.process, "RANK") != variable(process, "RANK");
  });
}

// --- rank 0 ---

struct RankZero {
  const NodeFacts* node;
  std::string how;      // "pid 4711 has RANK=0"
  std::string command;  // to see the same
};

inline std::vector<RankZero> rank_zero_processes(const Case& c) {
  std::vector<RankZero> found;
  for (const Rank& rank : ranks_of_the_job(c)) {
    if (variable(*rank.process, "RANK") != "0" || left_over(c, rank)) continue;
    const int pid = rank.process->pid;
    found.push_back(
        {rank.node, fmt::format("pid {} has RANK=0", pid), environ_command(pid, "RANK")});
  }
  return found;
}

inline bool is_torchrun(const Launch& launch) {
  return launch.kind == LauncherKind::torchrun || launch.kind == LauncherKind::torch_launch;
}

// Only a torchrun that was seen running: the line that a user typed for us may be another node's.
inline std::vector<RankZero> rank_zero_launches(const Case& c) {
  std::vector<RankZero> found;
  for (const Launch& launch : c.cluster.job.launches) {
    const NodeFacts* node = find_node(c.cluster, launch.origin.node);
    if (node == nullptr || !is_torchrun(launch) || for_one_node(launch)) continue;
    if (launch.node_rank != 0) continue;
    found.push_back({node, fmt::format("torchrun --node_rank 0 ({})", origin_text(launch.origin)),
                     "pgrep -af node_rank"});
  }
  return found;
}

// None when nothing tells, or two things disagree. That rank 0 is on the first peer is customary
// and proves nothing.
inline std::optional<RankZero> rank_zero(const Case& c) {
  auto found = rank_zero_processes(c);
  std::ranges::move(rank_zero_launches(c), std::back_inserter(found));
  const bool agree = std::ranges::all_of(
      found, [&](const RankZero& other) { return other.node == found.front().node; });
  if (found.empty() || !agree) return std::nullopt;
  return found.front();
}

}  // namespace distdoctor::checks
