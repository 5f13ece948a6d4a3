#include <distdoctor/run_ending.h>

#include "base/error.h"
#include "base/text.h"
#include "bisect/bisect.h"
#include "bisect/verdict.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace distdoctor::bisect {
namespace {

// A share of what the links allow below which a collective is called slow.
constexpr double kFarBelow = 0.6;
// How much faster a run has to be to say that what was changed slowed the other; without knowing
// what the links allow it takes more to be sure.
constexpr double kFaster = 1.25;
constexpr double kMuchFaster = 1.5;
constexpr int kRoundsHealthy = 3;  // a fault that shows in half of the runs hides once in eight
constexpr int kRoundsDoubtful = 8;

using Found = Known<std::optional<Isolation>>;

Step inconclusive(std::string why) {
  return Inconclusive{.why = std::move(why)};
}

Step step_of(const Wanted& wanted) {
  if (wanted.experiment) return *wanted.experiment;
  return Inconclusive{.why = "no more runs are allowed", .out_of_runs = true};
}

// Sound is what is faster than the baseline; a run that does not work says nothing of speed.
Judgement faster_than(double speed, double times) {
  return [=](const Experiment& run) {
    const auto here = speed_of(run);
    if (works(run) != Answer::sound || !here) return Answer::none;
    return *here >= times * speed ? Answer::sound : Answer::sick;
  };
}

std::vector<const Experiment*> baselines(const ClusterFacts& cluster, const Options& options) {
  std::vector<const Experiment*> runs;
  for (const Experiment& run : cluster.experiments) {
    const bool baseline =
        run.switches.empty() && std::ranges::equal(run.ranks, options.places, {}, &RankRun::place);
    if (baseline) runs.push_back(&run);
  }
  return runs;
}

double best_speed(const ClusterFacts& cluster, const Options& options) {
  double best = 0;
  for (const Experiment* run : baselines(cluster, options)) {
    if (works(*run) == Answer::sound) best = std::max(best, speed_of(*run).value_or(0));
  }
  return best;
}

// "of 8 runs of the same setup 1 did not work (run 3)".
std::string seldom(const Ask& ask) {
  std::vector<std::string> sick;
  const auto all = baselines(*ask.cluster, *ask.options);
  for (const Experiment* run : all) {
    if (works(*run) == Answer::sick) sick.push_back(std::to_string(run->number));
  }
  return "of " + std::to_string(all.size()) + " runs of the same setup " +
         std::to_string(sick.size()) + " did not work (run " + join(sick, ", ") +
         "): too few to tell a cause from chance";
}

// "rank 1 on node1 was killed by SIGKILL in run 0".
std::string why_not_run(const Ask& ask) {
  for (const Experiment* run : baselines(*ask.cluster, *ask.options)) {
    for (const RankRun& rank : run->ranks) {
      const auto signal = killed_from_outside(rank);
      if (!signal) continue;
      return "rank " + std::to_string(rank.rank) + " on " + rank.place.node + " was killed by " +
             std::string(*signal) + " in run " + std::to_string(run->number) + ", and again";
    }
  }
  return "the job's own environment could not be run";
}

Step broken(const Ask& ask) {
  const Found found = find_broken(ask);
  if (!found) return step_of(found.error());
  if (const auto& isolation = *found) return *isolation;
  if (ask.series->flaky()) return inconclusive(seldom(ask));
  return inconclusive("it does not work, and neither a switch nor fewer ranks made it work twice");
}

// What is known of its speed: none where nothing is wrong with that.
Found speed_trouble(const ClusterFacts& cluster,
                    const Options& options,
                    const Shape& shape,
                    const std::optional<LinkLimit>& limit) {
  const double speed = best_speed(cluster, options);
  if (speed <= 0 || shape.places.size() < 2) return std::nullopt;
  Series series(cluster, options, faster_than(speed, limit ? kFaster : kMuchFaster));
  const Ask ask{.cluster = &cluster, .options = &options, .shape = &shape, .series = &series};
  DD_TRY(auto straggler, find_straggler(ask));
  if (straggler) return straggler;
  if (limit && speed >= kFarBelow * limit->gb_per_s) return std::nullopt;
  return find_slow(ask, speed, limit);
}

// Runs that did not work beside a baseline that did: a switch may be to blame once; else the fault
// may hide in the baseline, which then takes more rounds.
int rounds_needed(const ClusterFacts& cluster) {
  int sick = 0;
  for (const Experiment& run : cluster.experiments) {
    if (works(run) == Answer::sick) sick += run.switches.empty() ? 2 : 1;
  }
  return sick > 1 ? kRoundsDoubtful : kRoundsHealthy;
}

Step working(const Ask& ask, const Reading& baseline) {
  const ClusterFacts& cluster = *ask.cluster;
  const auto rounds = ask.series->ask(ask.baseline(), rounds_needed(cluster));
  if (!rounds) return step_of(rounds.error());
  if (rounds->sick()) return broken(ask);
  if (!rounds->sound()) return inconclusive(ask.series->flaky() ? seldom(ask) : why_not_run(ask));
  const auto first =
      std::ranges::find(cluster.experiments, baseline.numbers.front(), &Experiment::number);
  const auto limit = limit_of(cluster, *ask.shape, *first);
  const Found found = speed_trouble(cluster, *ask.options, *ask.shape, limit);
  if (!found) return step_of(found.error());
  if (const auto& isolation = *found) return *isolation;
  return Healthy{.bus_gb_per_s = best_speed(cluster, *ask.options),
                 .allowed_gb_per_s = limit ? limit->gb_per_s : 0,
                 .limit = limit ? limit->limit : ""};
}

std::vector<int> devices_of(const NodeFacts& node) {
  std::vector<int> devices;
  if (node.nvml.known()) {
    for (const NvmlGpu& gpu : node.nvml->gpus) {
      const bool shut = gpu.mig.value_or(false) || gpu.compute_mode == "prohibited";
      if (!shut) devices.push_back(gpu.index);
    }
  } else if (node.gpu.known()) {
    for (std::size_t i = 0; i < node.gpu->gpus.size(); ++i) {
      devices.push_back(static_cast<int>(i));
    }
  }
  return devices;
}

std::string switches_text(const Switches& switches) {
  std::vector<std::string> all;
  for (const auto& [name, value] : switches) {
    all.push_back(value.empty() ? name + " unset" : name + "=" + printable(value));
  }
  return join(all, " ");
}

void add_lines(const std::vector<Candidate>& candidates, std::vector<std::string>& lines) {
  for (const Candidate& one : candidates) {
    lines.push_back("    " + printable(one.what) + ": " + switches_text(one.switches));
  }
}

// "net" stands for whatever carries between nodes.
constexpr Layer kNet[] = {Layer::net,       Layer::ib,  Layer::plugin, Layer::gdr,    Layer::pxn,
                          Layer::interface, Layer::hca, Layer::rail,   Layer::streams};

bool add_layers(std::string_view word, std::vector<Layer>& layers) {
  const std::string wanted = to_lower(word);
  if (wanted == "net") {
    layers.insert(layers.end(), std::begin(kNet), std::end(kNet));
    return true;
  }
  for (const std::string_view name : EnumNames<Layer>::values) {
    if (to_lower(name) != wanted || name == slug(Layer::none)) continue;
    layers.push_back(enum_from_slug<Layer>(name).value_or(Layer::none));
    return true;
  }
  return false;
}

// A rank of Gloo is a process, and no GPU: what is said of it is said of its node.
void name_nodes(Isolation& found) {
  for (RunPlace& place : found.places) place.device = -1;
  const auto again = std::ranges::unique(found.places);
  found.places.erase(again.begin(), again.end());
  const bool one = found.layer == Layer::link && found.places.size() < 2;
  if (found.layer == Layer::gpu || one) found.layer = Layer::node;
}

Step next_of_any(const ClusterFacts& cluster, const Options& options) {
  if (options.places.empty()) return inconclusive("there is no place for a rank");
  const Shape shape = shape_of(cluster, options);
  Series series(cluster, options, works);
  const Ask ask{.cluster = &cluster, .options = &options, .shape = &shape, .series = &series};
  const auto baseline = series.ask(ask.baseline());
  if (!baseline) return step_of(baseline.error());
  if (baseline->sick()) return broken(ask);
  if (baseline->sound()) return working(ask, *baseline);
  return inconclusive(why_not_run(ask));
}

}  // namespace

Step next(const ClusterFacts& cluster, const Options& options) {
  Step step = next_of_any(cluster, options);
  auto* found = std::get_if<Isolation>(&step);
  if (found != nullptr && options.backend == RunBackend::gloo) name_nodes(*found);
  return step;
}

std::vector<std::string> tree(const ClusterFacts& cluster, const Options& options) {
  const Shape shape = shape_of(cluster, options);
  std::vector<std::string> lines = {"1. " + std::to_string(shape.places.size()) + " ranks on " +
                                    std::to_string(shape.nodes.size()) +
                                    " nodes in the job's own environment"};
  lines.emplace_back("   it fails, hangs or corrupts: the first of these with which it works");
  add_lines(when_broken(shape, options, {}), lines);
  lines.emplace_back(
      "     then the smallest part of that, and where: each node alone, its GPUs by "
      "halves, with known-good partners");
  lines.emplace_back("     none: each node alone, nodes and GPUs by halves");
  lines.emplace_back("   it works, below " + std::to_string(static_cast<int>(kFarBelow * 100)) +
                     "% of what the links allow: the fastest of these");
  add_lines(when_slow(shape, options, shape.between_nodes()), lines);
  lines.emplace_back("     none: each node alone, nodes and GPUs by halves");
  lines.emplace_back("   it works at speed: " + std::to_string(kRoundsHealthy) + " rounds");
  lines.push_back("Every verdict is run twice; " + std::to_string(options.max_runs) +
                  " runs at most.");
  return lines;
}

std::vector<RunPlace> places_of(const ClusterFacts& cluster, std::optional<int> most_per_node) {
  std::vector<RunPlace> places;
  for (const NodeFacts& node : cluster.nodes) {
    if (!node.reached || !node.same_as.empty()) continue;
    std::vector<int> devices = devices_of(node);
    if (devices.empty()) {
      for (int i = 0; i < std::max(most_per_node.value_or(1), 1); ++i) devices.push_back(i);
    }
    const auto most = static_cast<std::size_t>(std::max(most_per_node.value_or(1 << 20), 1));
    if (devices.size() > most) devices.resize(most);
    for (const int device : devices) places.push_back({.node = node.host, .device = device});
  }
  return places;
}

std::optional<std::vector<Layer>> parse_layers(std::string_view text) {
  std::vector<Layer> layers;
  for (const std::string_view word : split(text, ',')) {
    if (!add_layers(trim(word), layers)) return std::nullopt;
  }
  return layers;
}

}  // namespace distdoctor::bisect
