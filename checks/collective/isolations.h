// What the checks of this folder share: an isolation and the runs that prove it, in words. They
// judge only runs that were asked for (bisect); without any there is nothing to see, and no gap.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/run_ending.h>
#include <distdoctor/run_speed.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::checks::collective {

inline std::vector<const Isolation*> isolations_of(const Case& c,
                                                   std::initializer_list<Layer> layers) {
  std::vector<const Isolation*> found;
  for (const Isolation& one : c.cluster.isolations) {
    if (std::ranges::find(layers, one.layer) != layers.end()) found.push_back(&one);
  }
  return found;
}

inline const Experiment* find_run(const Case& c, int number) {
  const auto& all = c.cluster.experiments;
  const auto found = std::ranges::find(all, number, &Experiment::number);
  return found == all.end() ? nullptr : &*found;
}

// The i-th run of the proof; null where facts were cut short.
inline const Experiment* proof_run(const Case& c, const Isolation& found, std::size_t i) {
  return i < found.proof.size() ? find_run(c, found.proof[i]) : nullptr;
}

// CUDA error 802, as the driver, NCCL and PyTorch write it: on a machine with NVSwitches the fabric
// manager has not let the GPUs in.
inline constexpr std::string_view kNoFabric = "system not yet initialized";
inline constexpr std::string_view kNoFabricName = "SYSTEM_NOT_READY";

inline constexpr std::string_view kStartFabric =
    "start nvidia-fabricmanager in exactly the driver's version on the drained node (in a cloud's "
    "virtual machine the fabric is the provider's); `nvidia-smi -q | grep -A 3 Fabric` shows "
    "`Completed`";

inline bool is_slow(const Isolation& found) {
  return found.ailment == Ailment::slow;
}

// --- words ---

// "node1", "GPU 3 of node1".
inline std::string place_text(const RunPlace& place) {
  return place.device < 0 ? place.node : fmt::format("GPU {} of {}", place.device, place.node);
}

// "on node1", "between GPU 3 of node1 and GPU 4 of node1"; empty: everywhere.
inline std::string where_text(const Isolation& found) {
  std::vector<std::string> texts;
  for (const RunPlace& place : found.places) texts.push_back(place_text(place));
  if (texts.empty()) return "";
  if (texts.size() == 2 && found.places.front().device >= 0) {
    return fmt::format(" between {} and {}", texts.front(), texts.back());
  }
  return fmt::format(" on {}", fmt::join(texts, ", "));
}

// "hangs", or "takes a part of the speed".
inline std::string ailment_text(const Isolation& found) {
  return is_slow(found) ? "is slow" : std::string(slug(found.ailment));
}

inline std::string speeds_text(const Isolation& found) {
  if (!is_slow(found) || found.other_gb_per_s <= 0) return "";
  return fmt::format(": {:.1f} GB/s, and {:.1f} GB/s without it", found.bus_gb_per_s,
                     found.other_gb_per_s);
}

inline std::string flaky_text(const Isolation& found) {
  return found.flaky ? "; the same run went both ways, so it comes and goes" : "";
}

// --- runs ---

// The rank that began it, how far it came, and what its library said.
inline std::string stopped_text(const Experiment& run) {
  const RankRun* first = first_cause(run);
  if (first == nullptr) return "";
  std::string text = fmt::format("; rank {} on {} stopped after {}", first->rank, first->place.node,
                                 slug(first->reached));
  if (!first->error.empty()) text += ": " + first->error.substr(0, 200);
  return text;
}

inline std::string outcome_text(const Experiment& run) {
  if (run.outcome != RunOutcome::ok) {
    return std::string(slug(run.outcome)) + stopped_text(run);
  }
  const double bus = speed_at_largest(run).bus_gb_per_s;
  return bus > 0 ? fmt::format("works, {:.1f} GB/s", bus) : "works";
}

inline std::string run_text(const Experiment& run) {
  return fmt::format("all-reduce of {} rank{}, run {} ({})", run.ranks.size(),
                     run.ranks.size() == 1 ? "" : "s", run.number, run.what);
}

// "node0:4,node1:4", each name safe for a shell.
inline std::string hosts_text(const Experiment& run) {
  std::vector<std::pair<std::string, int>> hosts;
  for (const RankRun& rank : run.ranks) {
    if (hosts.empty() || hosts.back().first != rank.place.node) {
      hosts.emplace_back(rank.place.node, 0);
    }
    ++hosts.back().second;
  }
  std::vector<std::string> texts;
  for (const auto& [host, ranks] : hosts) texts.push_back(fmt::format("{}:{}", host, ranks));
  return shell_quote(fmt::format("{}", fmt::join(texts, ",")));
}

inline std::string devices_text(const Experiment& run) {
  std::vector<int> devices;
  for (const RankRun& rank : run.ranks) devices.push_back(rank.place.device);
  return fmt::format("{}", fmt::join(devices, ","));
}

// No tool of others runs Gloo: our own, on the same nodes.
inline std::string gloo_command(const Case& c) {
  std::vector<std::string> hosts;
  for (const NodeFacts& node : c.cluster.nodes) hosts.push_back(node.host);
  std::string command = "distdoctor bisect -v --backend gloo";
  if (hosts.size() < 2) return command;
  return command + " --peers " + shell_quote(fmt::format("{}", fmt::join(hosts, ",")));
}

// nccl-tests' way to see the same, without us. An empty value is a variable to be unset.
inline std::string command_of(const Case& c, const Experiment& run) {
  if (run.backend == RunBackend::gloo) return gloo_command(c);
  const bool one_node = std::ranges::all_of(run.ranks, [&](const RankRun& rank) {
    return rank.place.node == run.ranks.front().place.node;
  });
  std::string unset;
  std::string set;
  for (const auto& [name, value] : run.switches) {
    if (value.empty()) {
      unset += " -u " + shell_quote(name);
    } else {
      set += (one_node ? " " : " -x ") + name + "=" + shell_quote(value);
    }
  }
  const std::string env = unset.empty() && set.empty() ? "" : "env" + unset + " ";
  const std::string test = "all_reduce_perf -b 8 -e 256M -f 8";
  if (one_node) {
    return fmt::format("env{}{} CUDA_VISIBLE_DEVICES={} NCCL_DEBUG=INFO {} -g {}", unset, set,
                       devices_text(run), test, run.ranks.size());
  }
  return fmt::format("{}mpirun -np {} -H {} -x NCCL_DEBUG=INFO{} {} -g 1", unset.empty() ? "" : env,
                     run.ranks.size(), hosts_text(run), set, test);
}

// --- findings ---

// Names come from the isolation; a node that the facts do not have is left out.
inline void add_subjects(const Case& c, const Isolation& found, Finding& finding) {
  Subjects& subjects = finding.subjects;
  for (const RunPlace& place : found.places) {
    if (find_node(c.cluster, place.node) == nullptr) continue;
    if (std::ranges::find(subjects.nodes, place.node) == subjects.nodes.end()) {
      subjects.nodes.push_back(place.node);
    }
    if (place.device >= 0) {
      subjects.devices.push_back(fmt::format("{}/gpu{}", place.node, place.device));
    }
  }
}

inline std::string node_of(const Case& c, const Experiment& run) {
  for (const RankRun& rank : run.ranks) {
    if (find_node(c.cluster, rank.place.node) != nullptr) return rank.place.node;
  }
  return c.cluster.nodes.front().host;
}

inline void add_run(const Case& c,
                    const Experiment& run,
                    const std::string& expected,
                    Finding& finding) {
  finding.evidence.push_back({.node = node_of(c, run),
                              .fact = run_text(run),
                              .observed = outcome_text(run),
                              .expected = expected,
                              .command = command_of(c, run)});
}

// The pair of runs that proves it. Without both in the facts nobody is accused.
inline bool add_proof(const Case& c, const Isolation& found, Finding& finding) {
  const Experiment* sick = proof_run(c, found, 0);
  const Experiment* other = proof_run(c, found, 1);
  if (sick == nullptr || other == nullptr || c.cluster.nodes.empty()) return false;
  add_run(c, *sick, is_slow(found) ? "as fast as the run below" : "works", finding);
  const bool sound = found.layer != Layer::setup && found.layer != Layer::none;
  add_run(c, *other,
          sound ? "the same as the run above, were this not the cause"
                : "another outcome, were it chance",
          finding);
  return true;
}

inline Symptom symptom_of(Ailment ailment) {
  switch (ailment) {
    case Ailment::fails:
      return Symptom::crash;
    case Ailment::hangs:
      return Symptom::hang;
    case Ailment::corrupts:
      return Symptom::wrong_result;
    case Ailment::slow:
      break;
  }
  return Symptom::slow;
}

inline Finding about(const Case& c, const Isolation& found, const char* code, std::string summary) {
  Finding finding{.code = code,
                  .severity = is_slow(found) ? Severity::degraded : Severity::blocker,
                  .certainty = found.flaky ? Certainty::likely : Certainty::proved,
                  .symptom = symptom_of(found.ailment),
                  .summary = std::move(summary) + flaky_text(found)};
  add_subjects(c, found, finding);
  return finding;
}

// The switches with which it works, for the time being.
inline void add_workaround(const Isolation& found, const std::string& cost, Finding& finding) {
  if (found.workaround.empty()) return;
  Fix fix{.node = "*", .kind = Fix::Kind::env, .text = cost};
  for (const auto& [name, value] : found.workaround) {
    fix.env[name] = value.empty() ? std::nullopt : std::optional(value);
  }
  finding.fix.push_back(std::move(fix));
}

// The nodes that are meant; all where it is everywhere.
inline std::vector<const NodeFacts*> nodes_of(const Case& c, const Isolation& found) {
  std::vector<const NodeFacts*> nodes;
  for (const NodeFacts& node : c.cluster.nodes) {
    const bool meant =
        found.places.empty() ||
        std::ranges::find(found.places, node.host, &RunPlace::node) != found.places.end();
    if (meant) nodes.push_back(&node);
  }
  return nodes;
}

inline Fix by_hand(const std::string& node, std::string text) {
  return {.node = node, .kind = Fix::Kind::manual, .text = std::move(text)};
}

inline std::string settings_text(const std::map<std::string, std::string>& settings) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : settings) {
    texts.push_back(value.empty() ? name + " unset" : fmt::format("{}={}", name, value));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

}  // namespace distdoctor::checks::collective
