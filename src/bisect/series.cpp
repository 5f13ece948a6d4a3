#include "bisect/series.h"

#include <distdoctor/run_speed.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

namespace distdoctor::bisect {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// Smaller messages are a matter of latency (nccl-tests, PERFORMANCE.md).
constexpr std::int64_t kJudgedNccl = 256 * kMiB;
constexpr std::int64_t kJudgedGloo = 4 * kMiB;

constexpr int kRunsToEstimate = 5;  // of a baseline that went both ways
constexpr double kLuck = 0.01;      // chance that a sick setup passes for a sound one
constexpr double kRarest = 0.25;    // a fault that shows less often than this is beyond us
constexpr int kMostPatience = 8;

bool same(const Experiment& run, const Setup& setup) {
  return run.switches == setup.switches &&
         std::ranges::equal(run.ranks, setup.places, {}, &RankRun::place);
}

std::vector<std::int64_t> usual_sizes() {
  return {8, 64 * 1024, 4 * kMiB, kJudgedNccl};
}

}  // namespace

Answer works(const Experiment& run) {
  if (run.outcome == RunOutcome::not_run || !run.unheeded.empty()) return Answer::none;
  return run.outcome == RunOutcome::ok ? Answer::sound : Answer::sick;
}

std::optional<double> speed_of(const Experiment& run) {
  const RunSpeed speed = speed_at_largest(run);
  const std::int64_t judged = run.backend == RunBackend::nccl ? kJudgedNccl : kJudgedGloo;
  return speed.bytes < judged ? std::nullopt : std::optional(speed.bus_gb_per_s);
}

Series::Series(const ClusterFacts& cluster, const Options& options, Judgement judgement)
    : cluster_(&cluster), options_(&options), judgement_(std::move(judgement)) {
  look_for_doubt();
}

void Series::look_for_doubt() {
  for (const Experiment& run : cluster_->experiments) {
    Setup setup{.switches = run.switches};
    for (const RankRun& rank : run.ranks) setup.places.push_back(rank.place);
    const auto runs = runs_of(setup);
    const auto had = [&](Answer answer) {
      return std::ranges::any_of(runs,
                                 [&](const Experiment* one) { return judgement_(*one) == answer; });
    };
    flaky_ = flaky_ || (had(Answer::sound) && had(Answer::sick));
  }
  if (flaky_) expect_luck(runs_of({.places = options_->places}));
}

// So many sound runs in a row that a fault as frequent as this one would have shown.
void Series::expect_luck(const std::vector<const Experiment*>& baseline) {
  const auto sick = std::ranges::count_if(
      baseline, [&](const Experiment* run) { return judgement_(*run) == Answer::sick; });
  // One more that was sound: so few runs tell the share but roughly.
  const double share = static_cast<double>(sick) / static_cast<double>(baseline.size() + 1);
  const double often = std::clamp(share, kRarest, 0.95);
  patience_ = std::clamp(static_cast<int>(std::ceil(std::log(kLuck) / std::log(1 - often))), 2,
                         kMostPatience);
}

std::vector<const Experiment*> Series::runs_of(const Setup& setup) const {
  std::vector<const Experiment*> runs;
  for (const Experiment& run : cluster_->experiments) {
    if (same(run, setup)) runs.push_back(&run);
  }
  return runs;
}

std::vector<RunPlace> Series::in_order(const std::vector<RunPlace>& places) const {
  std::vector<RunPlace> ordered;
  std::ranges::copy_if(options_->places, std::back_inserter(ordered), [&](const RunPlace& place) {
    return std::ranges::find(places, place) != places.end();
  });
  return ordered;
}

Wanted Series::want(const Setup& setup) const {
  const std::size_t done = cluster_->experiments.size();
  if (done >= static_cast<std::size_t>(std::max(options_->max_runs, 0))) return {};
  Experiment run{.number = static_cast<int>(done),
                 .what = setup.what,
                 .backend = options_->backend,
                 .switches = setup.switches,
                 .sizes = options_->sizes.empty() ? usual_sizes() : options_->sizes};
  int rank = 0;
  for (const RunPlace& place : setup.places) run.ranks.push_back({.rank = rank++, .place = place});
  return {.experiment = std::move(run)};
}

// Of all the same runs together; sick_runs counts those.
Reading Series::read(const std::vector<const Experiment*>& runs, int& sick_runs) const {
  Reading reading;
  for (const Experiment* run : runs) {
    const Answer answer = judgement_(*run);
    if (answer == Answer::none) return {.numbers = {run->number}};
    const bool decides = answer == Answer::sick && sick_runs++ == 0;
    reading.numbers.insert(decides ? reading.numbers.begin() : reading.numbers.end(), run->number);
    reading.gb_per_s = std::max(reading.gb_per_s, speed_of(*run).value_or(0));
  }
  reading.answer = sick_runs > 0 ? Answer::sick : Answer::sound;
  return reading;
}

Known<Reading> Series::ask(const Setup& setup, int at_least) {
  const bool baseline = setup.switches.empty() && setup.places == options_->places;
  const int enough =
      flaky_ ? std::max({at_least, patience_, baseline ? kRunsToEstimate : 0}) : at_least;
  const auto runs = runs_of(setup);
  int sick_runs = 0;
  Reading reading = read(runs, sick_runs);
  const bool proves_nothing = !runs.empty() && reading.answer == Answer::none;
  const bool settled = sick_runs > 0 && (!baseline || !flaky_) && sick_runs >= at_least;
  const bool done = proves_nothing || settled || static_cast<int>(runs.size()) >= enough;
  if (!done) return std::unexpected(want(setup));
  return reading;
}

}  // namespace distdoctor::bisect
