// How the ranks of a run ended: who caused it, who merely suffered, and who was killed from
// outside.
#pragma once

#include <distdoctor/facts/experiment.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace distdoctor {

// What an agent says of a rank that it ended because there was nobody to meet any more.
inline constexpr std::string_view kAnotherHadEnded = "another rank had ended before";
// What it says of one that the end of the budget stopped: that is no hang.
inline constexpr std::string_view kCutByBudget = "cut: the time of all runs was used up";
// What the coordinator says of one that had not found the others.
inline constexpr std::string_view kStillLooking =
    "it was still looking for the others when the run was ended";

// "SIGKILL" or "SIGTERM", where that ended the rank. No library sends these to its own process, so
// it was somebody else: the out-of-memory killer, a resource manager, a person. The agent writes
// "killed by SIGKILL" (machine/open_child.cpp).
inline std::optional<std::string_view> killed_from_outside(const RankRun& rank) {
  if (rank.outcome != RunOutcome::crashed) return std::nullopt;
  for (const std::string_view name : {"SIGKILL", "SIGTERM"}) {
    if (rank.error.find("killed by " + std::string(name)) != std::string::npos) return name;
  }
  return std::nullopt;
}

// Such a run tells of that process, and nothing of what carries the data. A wrong sum stays one.
inline bool disturbed(const Experiment& run) {
  return run.outcome != RunOutcome::wrong_result &&
         std::ranges::any_of(run.ranks,
                             [](const RankRun& rank) { return bool(killed_from_outside(rank)); });
}

// The other side was gone: NCCL's words (ncclRemoteError), Gloo's (transport/tcp/pair.cc), ours.
inline bool suffered(const RankRun& rank) {
  constexpr std::array<std::string_view, 6> kWords = {
      "remote process exited or there was a network error",
      "Connection closed by peer",
      "Connection reset by peer",
      "Broken pipe",
      kAnotherHadEnded,
      kStillLooking};
  const bool may = rank.outcome == RunOutcome::failed || rank.outcome == RunOutcome::not_run;
  return may && std::ranges::any_of(kWords, [&](std::string_view words) {
           return rank.error.find(words) != std::string::npos;
         });
}

// How bad an ending is, for the worst of several: what a rank did itself before what it suffered.
inline auto badness(const RankRun& rank) {
  constexpr std::array kOrder = {RunOutcome::ok,     RunOutcome::not_run, RunOutcome::hung,
                                 RunOutcome::failed, RunOutcome::crashed, RunOutcome::wrong_result};
  const auto place = std::ranges::find(kOrder, rank.outcome) - kOrder.begin();
  const bool caused = !suffered(rank);
  const auto class_of = rank.outcome == RunOutcome::ok ? 0 : caused ? 2 : 1;
  return std::tuple(class_of, place);
}

// The rank to be named: of the worst ones that which says something, then the one that came least
// far. Null where all went well, or there is none.
inline const RankRun* first_cause(const Experiment& run) {
  const auto order = [](const RankRun& rank) {
    return std::tuple(badness(rank), !rank.error.empty(), -static_cast<int>(rank.reached));
  };
  const auto worst = std::ranges::max_element(run.ranks, {}, order);
  const bool none = worst == run.ranks.end() || worst->outcome == RunOutcome::ok;
  return none ? nullptr : &*worst;
}

}  // namespace distdoctor
