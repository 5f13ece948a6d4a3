// Isolations of a World, with the two FAKE runs that would prove them: two ranks on node0, two on
// node1, once as they were and once with the workaround.
#pragma once

#include "support/check_cases.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {

inline RunOutcome fake_outcome(Ailment ailment) {
  switch (ailment) {
    case Ailment::fails:
      return RunOutcome::failed;
    case Ailment::hangs:
      return RunOutcome::hung;
    case Ailment::corrupts:
      return RunOutcome::wrong_result;
    case Ailment::slow:
      break;
  }
  return RunOutcome::ok;
}

inline Experiment fake_run(int number, std::string what, RunOutcome outcome, double gb_per_s) {
  Experiment run{.number = number, .what = std::move(what), .outcome = outcome};
  for (int i = 0; i < 4; ++i) {
    RankRun rank{.rank = i, .place = {.node = i < 2 ? "node0" : "node1", .device = i % 2}};
    rank.outcome = outcome;
    rank.reached = outcome == RunOutcome::ok ? RunStage::done : RunStage::comm_init;
    if (gb_per_s > 0) rank.timings = {{.bytes = 1 << 28, .bus_gb_per_s = gb_per_s}};
    run.ranks.push_back(rank);
  }
  return run;
}

// `error`: the words of rank 2's library in the sick run.
inline void isolate(World& world, Isolation found, const std::string& error = "") {
  const bool slow = found.ailment == Ailment::slow;
  const bool sound = found.layer != Layer::setup && found.layer != Layer::none;
  if (slow) {
    found.bus_gb_per_s = 2;
    found.other_gb_per_s = sound ? 12 : 0;
  }
  const RunOutcome sick = fake_outcome(found.ailment);
  world.cluster.experiments = {
      fake_run(0, "baseline", sick, slow ? 2 : 0),
      fake_run(1, "the other", sound ? RunOutcome::ok : sick, slow ? (sound ? 12 : 2) : 0)};
  world.cluster.experiments[0].ranks[2].error = error;
  if (sound) world.cluster.experiments[1].switches = found.workaround;
  found.proof = {0, 1};
  world.cluster.isolations = {std::move(found)};
}

// Facts that were cut short: nobody is accused by half a pair.
inline void lose_the_sound_run(World& world) {
  world.cluster.experiments.pop_back();
}

inline constexpr const char* kFakeTest = " all_reduce_perf -b 8 -e 256M -f 8 -g 1";

// The rows that such a pair of runs gives; `set` as mpirun takes it: " -x NCCL_P2P_DISABLE=1".
inline std::vector<std::string> proof_rows(Ailment ailment,
                                           const std::string& set,
                                           const std::string& said = "",
                                           const std::string& unset = "") {
  const std::string head = "node0 all-reduce of 4 ranks, run ";
  const std::string mpirun = "mpirun -np 4 -H node0:2,node1:2 -x NCCL_DEBUG=INFO";
  const bool slow = ailment == Ailment::slow;
  const std::string sick = slow ? "works, 2.0 GB/s, not as fast as the run below"
                                : std::string(slug(fake_outcome(ailment))) +
                                      (said.empty() ? "; rank 0 on node0" : "; rank 2 on node1") +
                                      " stopped after comm_init" +
                                      (said.empty() ? "" : ": " + said) + ", not works";
  return {head + "0 (baseline): " + sick + "; " + mpirun + kFakeTest,
          head + "1 (the other): works" + (slow ? ", 12.0 GB/s" : "") +
              ", not the same as the run above, were this not the cause; " + unset + mpirun + set +
              kFakeTest};
}

// Of an isolation without a sound run: the same once more.
inline std::vector<std::string> twice_rows(const std::string& outcome,
                                           const std::string& said,
                                           const std::string& expected) {
  const std::string head = "node0 all-reduce of 4 ranks, run ";
  std::string first = outcome;
  const std::string quiet = "rank 0 on node0";
  if (const auto at = first.find(quiet); !said.empty() && at != std::string::npos) {
    first.replace(at, quiet.size(), "rank 2 on node1");  // who says something is named
  }
  const std::string command =
      std::string("; mpirun -np 4 -H node0:2,node1:2 -x NCCL_DEBUG=INFO") + kFakeTest;
  return {head + "0 (baseline): " + first + said + ", not " + expected + command,
          head + "1 (the other): " + outcome + ", not another outcome, were it chance" + command};
}

inline std::vector<std::string> with_rows(std::vector<std::string> rows,
                                          const std::vector<std::string>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace distdoctor::testing
