#include "bisect/series.h"

#include <distdoctor/run_ending.h>
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
constexpr int kMostOfOne = 8;       // runs of a setup that went wrong but once: does it come again?
constexpr double kLuck = 0.01;      // chance that a sick setup passes for a sound one, by its share
constexpr double kProof = 0.05;     // and that all of the runs came out so though nothing differs
constexpr double kRarest = 0.25;    // a fault that shows less often than this is beyond us
constexpr int kMostPatience = 16;
constexpr int kMostDisturbed = 2;  // runs of one setup that somebody may break off

// Of `runs` runs `sick` went wrong. That all of `more` others, of the same kind, are sound has this
// chance (Fisher's exact test).
double chance(int sick, int runs, int more) {
  double luck = 1;
  for (int i = 0; i < sick; ++i) luck *= static_cast<double>(runs - i) / (runs + more - i);
  return luck;
}

bool same(const Experiment& run, const Setup& setup) {
  return run.switches == setup.switches &&
         std::ranges::equal(run.ranks, setup.places, {}, &RankRun::place);
}

std::vector<std::int64_t> usual_sizes() {
  return {8, 64 * 1024, 4 * kMiB, kJudgedNccl};
}

}  // namespace

Answer works(const Experiment& run) {
  if (run.outcome == RunOutcome::not_run || !run.unheeded.empty() || disturbed(run)) {
    return Answer::none;
  }
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
  baseline_sick_ = static_cast<int>(std::ranges::count_if(
      baseline, [&](const Experiment* run) { return judgement_(*run) == Answer::sick; }));
  const auto runs = static_cast<int>(baseline.size());
  // One more that was sound: so few runs tell the share but roughly.
  const double often = std::clamp(baseline_sick_ / (runs + 1.0), kRarest, 0.95);
  patience_ =
      std::clamp(static_cast<int>(std::ceil(std::log(kLuck) / std::log(1 - often))), 2, kMostOfOne);
  while (patience_ < kMostPatience && chance(baseline_sick_, runs, patience_) > kProof) ++patience_;
  provable_ = baseline_sick_ > 1 && chance(baseline_sick_, runs, patience_) <= kProof;
}

std::vector<const Experiment*> Series::runs_of(const Setup& setup) const {
  std::vector<const Experiment*> runs;
  for (const Experiment& run : cluster_->experiments) {
    if (same(run, setup) && !disturbed(run)) runs.push_back(&run);
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

int Series::enough(const Setup& setup, int at_least, int sick_runs) const {
  if (!flaky_) return at_least;
  const bool baseline = setup.switches.empty() && setup.places == options_->places;
  if (!baseline && sick_runs == 1 && at_least > 1) return kMostOfOne;
  if (!baseline) return std::max(at_least, patience_);
  return std::max({at_least, kRunsToEstimate, std::min(patience_, kMostOfOne)});
}

// The runs of it that somebody broke off; they have been made again as often as is worth it.
std::vector<int> Series::given_up(const Setup& setup) const {
  std::vector<int> numbers;
  for (const Experiment& run : cluster_->experiments) {
    if (same(run, setup) && disturbed(run)) numbers.push_back(run.number);
  }
  return numbers.size() < kMostDisturbed ? std::vector<int>{} : numbers;
}

Known<Reading> Series::ask(const Setup& setup, int at_least) {
  const bool baseline = setup.switches.empty() && setup.places == options_->places;
  const auto runs = runs_of(setup);
  int sick_runs = 0;
  Reading reading = read(runs, sick_runs);
  const bool proves_nothing = !runs.empty() && reading.answer == Answer::none;
  const bool settled = sick_runs > 0 && (!baseline || !flaky_) && sick_runs >= at_least;
  const bool done = proves_nothing || settled ||
                    static_cast<int>(runs.size()) >= enough(setup, at_least, sick_runs);
  if (!done) {
    const auto broken_off = given_up(setup);
    if (broken_off.empty()) return std::unexpected(want(setup));
    return Reading{.numbers = broken_off};
  }
  if (at_least > 1 && sick_runs == 1) reading.answer = Answer::none;
  return reading;
}

}  // namespace distdoctor::bisect
