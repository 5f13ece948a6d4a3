// The ranks of jobs that run on the nodes, as their own environments number them. Look-ups that the
// checks of this folder share; no judgement.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/meeting.h>
#include <distdoctor/views.h>
#include <distdoctor/workers.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::checks::env {

struct Rank {
  const NodeFacts* node;
  const TrainingProcess* process;
  int rank;
  std::optional<int> world;
  Leads master;      // where MASTER_ADDR leads from here
  std::string port;  // MASTER_PORT
  bool elastic;      // torchrun numbered it

  // Ranks of one job meet there.
  [[nodiscard]] std::string meeting() const { return master.to + " " + port; }
};

// "2, 3 and 7"; "0, 4-6 and 8-1023". `numbers` in rising order.
inline std::string listed(const std::vector<int>& numbers) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    const bool range = last >= i + 2;
    runs.push_back(range ? fmt::format("{}-{}", numbers[i], numbers[last])
                         : fmt::to_string(numbers[i]));
    i = range ? last + 1 : i + 1;
  }
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) text += i + 1 == runs.size() ? " and " : ", ";
    text += runs[i];
  }
  return text;
}

inline std::string environ_of(const TrainingProcess& process) {
  return fmt::format("tr '\\0' '\\n' < /proc/{}/environ | grep -E '(RANK|WORLD_SIZE)='",
                     process.pid);
}

// Ranks of another network namespace, a container's, are left out: its 127.0.0.1 is not ours.
inline void add_ranks(const std::vector<NodeFacts>& nodes,
                      const NodeFacts& node,
                      std::vector<Rank>& ranks) {
  for (const TrainingProcess& process : *node.processes) {
    const auto rank = number(process, "RANK");
    if (process.role != ProcessRole::worker || !process.our_network || !rank ||
        process.state == "Z" || inherited(*node.processes, process)) {
      continue;
    }
    const auto master = variable(process, "MASTER_ADDR");
    ranks.push_back({.node = &node,
                     .process = &process,
                     .rank = *rank,
                     .world = number(process, "WORLD_SIZE"),
                     .master = master ? leads(nodes, node, *master) : Leads{},
                     .port = variable(process, "MASTER_PORT").value_or(""),
                     .elastic = variable(process, "TORCHELASTIC_RUN_ID").has_value()});
  }
}

// Whether an orphan is a rest: a shell that has ended leaves its job's ranks as orphans, too, and
// these have each other.
inline bool left_over(const std::vector<Rank>& ranks, const Rank& rank) {
  if (!rank.process->orphan) return false;
  const auto of_its_job = [&](const Rank& other) {
    return other.meeting() == rank.meeting() && other.process->uid == rank.process->uid;
  };
  const bool taken = std::ranges::any_of(ranks, [&](const Rank& other) {
    return of_its_job(other) && other.rank == rank.rank && !other.process->orphan;
  });
  const bool alone = std::ranges::none_of(
      ranks, [&](const Rank& other) { return of_its_job(other) && other.rank != rank.rank; });
  return taken || alone;
}

inline std::vector<Rank> without_rests(const std::vector<Rank>& ranks) {
  std::vector<Rank> living;
  std::ranges::copy_if(ranks, std::back_inserter(living),
                       [&](const Rank& rank) { return !left_over(ranks, rank); });
  return living;
}

// By user, run and Slurm job, and node for a job of one node: what is numbered together.
using Jobs = std::map<std::string, std::vector<Rank>>;

inline Jobs jobs_of(const std::vector<Rank>& ranks) {
  Jobs jobs;
  for (const Rank& rank : ranks) {
    const TrainingProcess& process = *rank.process;
    const auto run = variable(process, "TORCHELASTIC_RUN_ID").value_or("");
    const auto slurm = variable(process, "SLURM_JOB_ID").value_or("");
    const std::string node = alone_on_its_node(process) ? rank.node->host : "";
    jobs[fmt::format("{} {} {} {}", process.uid, run, slurm, node)].push_back(rank);
  }
  return jobs;
}

inline bool complete(const std::vector<Rank>& ranks) {
  std::vector<int> numbers;
  for (const Rank& rank : ranks) {
    if (rank.world != ranks.front().world) return false;
    numbers.push_back(rank.rank);
  }
  std::ranges::sort(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != static_cast<int>(i)) return false;
  }
  return ranks.front().world == static_cast<int>(numbers.size());
}

// Two ranks that meet at one place have one number, or one has a number that does not exist.
inline bool numbers_clash(const std::vector<Rank>& ranks) {
  std::set<std::pair<std::string, int>> seen;
  return std::ranges::any_of(ranks, [&](const Rank& rank) {
    const bool outside = rank.world && (rank.rank < 0 || rank.rank >= *rank.world);
    return outside || !seen.insert({rank.meeting(), rank.rank}).second;
  });
}

// Complete jobs are healthy. What is left of one user and run is one job, torn apart, where the
// parts lack each other's numbers; parts with a number in common are jobs of their own.
inline std::vector<std::vector<Rank>> incomplete_jobs(const std::vector<Rank>& ranks) {
  std::map<std::string, std::vector<Rank>> parts;
  for (const Rank& rank : ranks) parts[rank.meeting()].push_back(rank);
  std::erase_if(parts, [](const auto& part) { return complete(part.second); });
  std::set<int> numbers;
  std::size_t apart = 0;
  for (const auto& [meeting, part] : parts) {
    std::set<int> own;
    for (const Rank& rank : part) own.insert(rank.rank);
    apart += own.size();
    numbers.insert(own.begin(), own.end());
  }
  std::vector<std::vector<Rank>> jobs;
  if (numbers.size() < apart) {
    for (auto& [meeting, part] : parts) jobs.push_back(std::move(part));
    return jobs;
  }
  std::vector<Rank> torn;
  std::ranges::copy_if(ranks, std::back_inserter(torn),
                       [&](const Rank& rank) { return parts.contains(rank.meeting()); });
  if (!torn.empty()) jobs.push_back(std::move(torn));
  return jobs;
}

// --- whether the job is larger than what we were shown ---

inline bool meets_on_its_node(const Rank& rank) {
  const std::string master = variable(*rank.process, "MASTER_ADDR").value_or("");
  const auto literal = Address::parse(master);
  return master == "localhost" || (literal && literal->loopback()) ||
         alone_on_its_node(*rank.process);
}

// On how many nodes its launcher started it; torchrun says so after all of them have joined.
inline int nodes_started(const Rank& rank) {
  return std::max(number(*rank.process, "GROUP_WORLD_SIZE").value_or(0),
                  number(*rank.process, "SLURM_JOB_NUM_NODES").value_or(0));
}

// One node alone says nothing about the ranks of the others.
inline bool more_nodes_than_named(const ClusterFacts& cluster, const std::vector<Rank>& ranks) {
  const auto named = static_cast<int>(cluster.nodes.size());
  return std::ranges::any_of(ranks, [&](const Rank& rank) {
    return !meets_on_its_node(rank) && (named == 1 || nodes_started(rank) > named);
  });
}

inline bool is_a_peers(const ClusterFacts& cluster, const Address& address) {
  return address.loopback() || std::ranges::any_of(cluster.nodes, [&](const NodeFacts& node) {
           return has_address(node, address);
         });
}

// Its store is no peer's, or somebody who is no peer talks with it.
inline bool members_elsewhere(const ClusterFacts& cluster, const std::vector<Rank>& ranks) {
  return std::ranges::any_of(ranks, [&](const Rank& rank) {
    if (!rank.master.to.empty() && !rank.master.to_a_peer) return true;
    const auto port = number(rank.port);
    if (!port || !rank.node->sockets.known()) return false;
    return std::ranges::any_of(rank.node->sockets->connections, [&](const Connection& row) {
      const bool store = row.local_port == *port || row.remote_port == *port;
      return store && row.state == TcpState::established && !is_a_peers(cluster, row.remote);
    });
  });
}

// Nobody saw all connections of the node that has the store.
inline bool store_unseen(const ClusterFacts& cluster, const std::vector<Rank>& ranks) {
  return std::ranges::any_of(ranks, [&](const Rank& rank) {
    const NodeFacts* node = find_node(cluster, rank.master.to);
    return node != nullptr && (!node->sockets.known() || node->sockets->truncated);
  });
}

inline std::vector<std::string> nodes_of(const std::vector<Rank>& ranks) {
  std::vector<std::string> nodes;
  for (const Rank& rank : ranks) {
    if (std::ranges::find(nodes, rank.node->host) == nodes.end()) nodes.push_back(rank.node->host);
  }
  return nodes;
}

}  // namespace distdoctor::checks::env
