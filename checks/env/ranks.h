// The ranks of jobs that run on the nodes, as their own environments number them. Look-ups that the
// checks of this folder share; no judgement.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace distdoctor::checks::env {

inline std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

inline std::optional<std::string> variable(const TrainingProcess& process,
                                           const std::string& name) {
  if (!process.env.known()) return std::nullopt;
  const auto found = process.env->find(name);
  return found == process.env->end() ? std::nullopt : std::optional(found->second);
}

inline std::optional<int> number(const TrainingProcess& process, const std::string& name) {
  const auto text = variable(process, name);
  return text ? number(*text) : std::nullopt;
}

struct Rank {
  const NodeFacts* node;
  const TrainingProcess* process;
  int rank;
  std::optional<int> world;
  std::string meeting;  // MASTER_PORT: ranks of one job meet there
  bool elastic;         // torchrun numbered it
};

// "2, 3 and 7".
inline std::string listed(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += i + 1 == numbers.size() ? " and " : ", ";
    text += fmt::to_string(numbers[i]);
  }
  return text;
}

inline std::string environ_of(const TrainingProcess& process) {
  return fmt::format("tr '\\0' '\\n' < /proc/{}/environ | grep -E '(RANK|WORLD_SIZE)='",
                     process.pid);
}

// A data loader or a shell around the worker has the worker's environment: of one family on a node
// the eldest with a rank counts.
inline bool inherited(const std::vector<TrainingProcess>& all, const TrainingProcess& process) {
  const auto rank = variable(process, "RANK");
  int parent = process.parent;
  for (std::size_t steps = 0; steps < all.size(); ++steps) {
    const auto found = std::ranges::find(all, parent, &TrainingProcess::pid);
    if (found == all.end()) return false;
    if (found->role == ProcessRole::worker && variable(*found, "RANK") == rank) return true;
    parent = found->parent;
  }
  return false;
}

inline void add_ranks(const NodeFacts& node, std::vector<Rank>& ranks) {
  for (const TrainingProcess& process : *node.processes) {
    const auto rank = number(process, "RANK");
    const bool dead = process.orphan || process.state == "Z";
    if (process.role != ProcessRole::worker || !rank || dead ||
        inherited(*node.processes, process)) {
      continue;
    }
    ranks.push_back({.node = &node,
                     .process = &process,
                     .rank = *rank,
                     .world = number(process, "WORLD_SIZE"),
                     .meeting = variable(process, "MASTER_PORT").value_or(""),
                     .elastic = variable(process, "TORCHELASTIC_RUN_ID").has_value()});
  }
}

// By user, run and Slurm job: what is numbered together.
using Jobs = std::map<std::string, std::vector<Rank>>;

inline Jobs jobs_of(const std::vector<Rank>& ranks) {
  Jobs jobs;
  for (const Rank& rank : ranks) {
    const TrainingProcess& process = *rank.process;
    jobs[fmt::format("{} {} {}", process.uid, variable(process, "TORCHELASTIC_RUN_ID").value_or(""),
                     variable(process, "SLURM_JOB_ID").value_or(""))]
        .push_back(rank);
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

inline std::vector<std::string> nodes_of(const std::vector<Rank>& ranks) {
  std::vector<std::string> nodes;
  for (const Rank& rank : ranks) {
    if (std::ranges::find(nodes, rank.node->host) == nodes.end()) nodes.push_back(rank.node->host);
  }
  return nodes;
}

}  // namespace distdoctor::checks::env
