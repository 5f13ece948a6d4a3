// Why it does not work: the layer by switches, then where; where no switch helps, the place.
#include "base/error.h"
#include "bisect/places.h"
#include "bisect/verdict.h"

#include <algorithm>
#include <utility>

namespace distdoctor::bisect {
namespace {

using Found = Known<std::optional<Isolation>>;

const Experiment& run_of(const Ask& ask, int number) {
  return *std::ranges::find(ask.cluster->experiments, number, &Experiment::number);
}

Ailment ailment_of(const Experiment& run) {
  if (run.outcome == RunOutcome::hung) return Ailment::hangs;
  return run.outcome == RunOutcome::wrong_result ? Ailment::corrupts : Ailment::fails;
}

Isolation isolation_of(const Ask& ask, Layer layer, const std::vector<int>& sick) {
  const Experiment& run = run_of(ask, sick.front());
  return {.layer = layer,
          .ailment = ailment_of(run),
          .flaky = ask.series->flaky(),
          .bus_gb_per_s = speed_of(run).value_or(0)};
}

// --- the libraries, a device ---

std::vector<RunPlace> without_device(const Experiment& run) {
  std::vector<RunPlace> places;
  for (const RankRun& rank : run.ranks) {
    if (rank.reached < RunStage::device) places.push_back(rank.place);
  }
  return places;
}

bool whole_node(const std::vector<RunPlace>& places, const Shape& shape) {
  const auto of_node = on_node(shape.places, places.front().node);
  return of_node == places && of_node.size() > 1;
}

// Ranks that did not even get their device, while others wait for them.
Found without_the_deviceless(const Ask& ask, const Reading& baseline) {
  const auto blamed = without_device(run_of(ask, baseline.numbers.front()));
  if (blamed.empty()) return std::nullopt;
  if (blamed.size() == ask.shape->places.size()) {
    Isolation setup = isolation_of(ask, Layer::setup, baseline.numbers);
    setup.proof = baseline.numbers;
    return setup;
  }
  const auto rest = without(ask.shape->places, blamed);
  const Setup others{.what = "only " + places_text(rest), .places = rest};
  DD_TRY(const Reading sound, ask.series->ask(others, 2));
  if (!sound.sound()) return std::nullopt;
  const bool node = whole_node(blamed, *ask.shape);
  Isolation found = isolation_of(ask, node ? Layer::node : Layer::gpu, baseline.numbers);
  found.places = blamed;
  if (node) found.places = {{.node = blamed.front().node, .device = -1}};
  found.proof = proof_of(baseline.numbers, sound.numbers);
  return found;
}

// --- /dev/shm ---

// NCCL's pools stay in /dev/shm whatever is switched off: with one rank on each node they fit.
Found fewer_pools(const Ask& ask, const Reading& baseline) {
  const Experiment& run = run_of(ask, baseline.numbers.front());
  if (!ask.shape->shared_nodes || std::ranges::none_of(run.ranks, speaks_of_shm)) {
    return std::nullopt;
  }
  Isolation found = isolation_of(ask, Layer::shm, baseline.numbers);
  Setup one_each{.what = "one rank on each node"};
  for (const Unit& node : units_of_nodes(ask.shape->places)) {
    one_each.places.push_back(node.members.front());
    const bool speaks = std::ranges::any_of(run.ranks, [&](const RankRun& rank) {
      return rank.place.node == node.place.node && speaks_of_shm(rank);
    });
    if (speaks) found.places.push_back(node.place);
  }
  DD_TRY(const Reading sound, ask.series->ask(one_each, 2));
  if (!sound.sound()) return std::nullopt;
  found.proof = proof_of(baseline.numbers, sound.numbers);
  return found;
}

// --- the layer ---

// Of several HCAs the one without which it works.
Known<std::optional<Candidate>> one_hca(const Ask& ask) {
  const auto& all = ask.shape->hcas;
  if (all.size() < 2 || !allowed(*ask.options, Layer::hca)) return std::nullopt;
  const IsSick<std::string> is_sick = [&](const std::vector<std::string>& some) -> Known<bool> {
    DD_TRY(const Reading reading, ask.series->ask(ask.setup("some HCAs", only_hcas(some))));
    return reading.sick();
  };
  DD_TRY(const std::vector<std::string> bad, smallest(is_sick, all));
  if (bad.size() != 1) return std::nullopt;
  Candidate candidate{.layer = Layer::hca,
                      .what = "without " + bad.front(),
                      .switches = all_but_hcas(bad),
                      .names = bad};
  DD_TRY(const Reading rest, ask.series->ask(ask.setup(candidate.what, candidate.switches)));
  return rest.sound() ? std::optional(candidate) : std::nullopt;
}

// The smallest switch with which it works, too.
Known<Candidate> narrowed(const Ask& ask, const Candidate& broad) {
  for (const Candidate& smaller : within(broad, *ask.shape, *ask.options)) {
    DD_TRY(const Reading reading, ask.series->ask(ask.setup(smaller.what, smaller.switches)));
    if (reading.sound()) return smaller;
  }
  if (broad.layer != Layer::ib) return broad;
  DD_TRY(const std::optional<Candidate> hca, one_hca(ask));
  return hca.value_or(broad);
}

// Which of the job's own switches it takes.
Known<Candidate> own_switch(const Ask& ask, Candidate all) {
  std::vector<std::string> names;
  for (const auto& [name, value] : all.switches) names.push_back(name);
  const IsSick<std::string> is_sick = [&](const std::vector<std::string>& kept) -> Known<bool> {
    Switches unset = all.switches;
    for (const std::string& name : kept) unset.erase(name);
    DD_TRY(const Reading reading, ask.series->ask(ask.setup("some own switches unset", unset)));
    return reading.sick();
  };
  DD_TRY(const std::vector<std::string> blamed, smallest(is_sick, names));
  Candidate fewest = all;
  fewest.names = blamed;
  fewest.switches.clear();
  for (const std::string& name : blamed) fewest.switches[name] = "";
  fewest.what = "without " + blamed.front();
  DD_TRY(const Reading sound, ask.series->ask(ask.setup(fewest.what, fewest.switches)));
  all.names = names;
  return sound.sound() ? fewest : all;
}

Known<Candidate> sharpened(const Ask& ask, const Candidate& broad) {
  return broad.layer == Layer::settings ? own_switch(ask, broad) : narrowed(ask, broad);
}

Found with_switch(const Ask& ask, const Candidate& candidate) {
  DD_TRY(const Reading first, ask.series->ask(ask.setup(candidate.what, candidate.switches)));
  if (!first.sound()) return std::nullopt;
  DD_TRY(const Candidate chosen, sharpened(ask, candidate));
  DD_TRY(const Reading sound, ask.series->ask(ask.setup(chosen.what, chosen.switches), 2));
  if (!sound.sound()) return std::nullopt;
  DD_TRY(const Reading sick, ask.series->ask(ask.baseline(), 2));
  if (!sick.sick()) return std::nullopt;
  DD_TRY(const Where where, place_of_layer(ask, chosen.layer));
  Isolation found = isolation_of(ask, chosen.layer, sick.numbers);
  found.places = places_in(where);
  found.names = chosen.names;
  found.workaround = chosen.switches;
  found.other_gb_per_s = sound.gb_per_s;
  found.proof = proof_of(sick.numbers, sound.numbers);
  for (const int number : proof_of(where.sick, where.sound)) {
    if (std::ranges::find(found.proof, number) == found.proof.end()) found.proof.push_back(number);
  }
  return found;
}

Found by_switches(const Ask& ask, const Reading& baseline) {
  const Experiment& run = run_of(ask, baseline.numbers.front());
  const auto candidates = when_broken(*ask.shape, *ask.options, run);
  // The pools are there with every transport, and SHM may not be in use at all.
  bool pools_tried = false;
  if (std::ranges::find(candidates, Layer::shm, &Candidate::layer) == candidates.end()) {
    pools_tried = true;
    DD_TRY(auto pools, fewer_pools(ask, baseline));
    if (pools) return pools;
  }
  for (const Candidate& candidate : candidates) {
    DD_TRY(auto found, with_switch(ask, candidate));
    if (found) return found;
    if (candidate.layer != Layer::shm || pools_tried) continue;
    pools_tried = true;
    DD_TRY(auto pools, fewer_pools(ask, baseline));
    if (pools) return pools;
  }
  return std::nullopt;
}

Found by_places(const Ask& ask) {
  DD_TRY(const auto who, culprit(ask, false));
  if (!who) return std::nullopt;
  Isolation found = isolation_of(ask, who->layer, who->where.sick);
  found.places = places_in(who->where);
  found.proof = proof_of(who->where.sick, who->where.sound);
  return found;
}

}  // namespace

Found find_broken(const Ask& ask) {
  DD_TRY(const Reading baseline, ask.series->ask(ask.baseline(), 2));
  if (!baseline.sick() || ask.series->beyond_proof()) return std::nullopt;
  DD_TRY(auto deviceless, without_the_deviceless(ask, baseline));
  if (deviceless) return deviceless;
  DD_TRY(auto layer, by_switches(ask, baseline));
  if (layer) return layer;
  return by_places(ask);
}

}  // namespace distdoctor::bisect
