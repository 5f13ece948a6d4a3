// Why it is slow: a switch that makes it faster, a place without which it is faster.
#include "base/error.h"
#include "bisect/places.h"
#include "bisect/verdict.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace distdoctor::bisect {
namespace {

using Found = Known<std::optional<Isolation>>;

// Of what the links allow: then nothing else is tried.
constexpr double kGoodShare = 0.6;

struct Better {
  Candidate candidate;
  double gb_per_s = 0;
};

bool good_enough(double gb_per_s, const std::optional<LinkLimit>& limit) {
  return limit && gb_per_s >= kGoodShare * limit->gb_per_s;
}

Isolation slow(const Ask& ask, Layer layer, double speed, const std::optional<LinkLimit>& limit) {
  Isolation found{.layer = layer,
                  .ailment = Ailment::slow,
                  .flaky = ask.series->flaky(),
                  .bus_gb_per_s = speed};
  if (limit) {
    found.allowed_gb_per_s = limit->gb_per_s;
    found.limit = limit->limit;
  }
  return found;
}

Known<std::optional<Better>> fastest(const Ask& ask, const std::optional<LinkLimit>& limit) {
  std::optional<Better> best;
  const bool between = !limit || limit->between_nodes;
  for (const Candidate& one : when_slow(*ask.shape, *ask.options, between)) {
    DD_TRY(const Reading reading, ask.series->ask(ask.setup(one.what, one.switches)));
    if (!reading.sound() || (best && reading.gb_per_s <= best->gb_per_s)) continue;
    best = Better{.candidate = one, .gb_per_s = reading.gb_per_s};
    if (good_enough(reading.gb_per_s, limit)) break;
  }
  return best;
}

// Of two halves of the HCAs the slower one, and so on; in the end all but the one that is left.
Known<std::optional<Better>> without_slow_hca(const Ask& ask) {
  constexpr double kSlower = 0.8;
  std::vector<std::string> names = ask.shape->hcas_in_use;
  if (names.size() < 2 || !allowed(*ask.options, Layer::hca)) return std::nullopt;
  while (names.size() > 1) {
    const auto middle = names.begin() + static_cast<std::ptrdiff_t>((names.size() + 1) / 2);
    const std::vector<std::string> first(names.begin(), middle);
    const std::vector<std::string> second(middle, names.end());
    DD_TRY(const Reading a, ask.series->ask(ask.setup("some HCAs", only_hcas(first))));
    DD_TRY(const Reading b, ask.series->ask(ask.setup("some HCAs", only_hcas(second))));
    const bool measured = a.gb_per_s > 0 && b.gb_per_s > 0;
    const double each_a = a.gb_per_s / static_cast<double>(first.size());
    const double each_b = b.gb_per_s / static_cast<double>(second.size());
    if (!measured || std::min(each_a, each_b) > kSlower * std::max(each_a, each_b)) {
      return std::nullopt;
    }
    names = each_a < each_b ? first : second;
  }
  Candidate candidate{.layer = Layer::hca,
                      .what = "without " + names.front(),
                      .switches = all_but_hcas(names),
                      .names = names};
  DD_TRY(const Reading rest, ask.series->ask(ask.setup(candidate.what, candidate.switches)));
  if (!rest.sound()) return std::nullopt;
  return Better{.candidate = std::move(candidate), .gb_per_s = rest.gb_per_s};
}

Found faster_with(const Ask& ask,
                  const Better& better,
                  double speed,
                  const std::optional<LinkLimit>& limit) {
  const Candidate& chosen = better.candidate;
  DD_TRY(const Reading sound, ask.series->ask(ask.setup(chosen.what, chosen.switches), 2));
  DD_TRY(const Reading sick, ask.series->ask(ask.baseline(), 2));
  if (!sound.sound() || !sick.sick()) return std::nullopt;
  Isolation found = slow(ask, chosen.layer, speed, limit);
  found.names = chosen.names;
  if (chosen.layer == Layer::settings) {
    for (const auto& [name, value] : chosen.switches) found.names.push_back(name);
  }
  found.workaround = chosen.switches;
  found.other_gb_per_s = sound.gb_per_s;
  found.proof = proof_of(sick.numbers, sound.numbers);
  if (!limit) return found;
  DD_TRY(const Where where, place_of_layer(ask, chosen.layer));
  found.places = places_in(where);
  return found;
}

Found by_place(const Ask& ask, double speed, const std::optional<LinkLimit>& limit) {
  DD_TRY(const auto who, culprit(ask, true));
  if (!who) return std::nullopt;
  Isolation found = slow(ask, who->layer, speed, limit);
  found.places = places_in(who->where);
  found.proof = proof_of(who->where.sick, who->where.sound);
  for (const Experiment& run : ask.cluster->experiments) {
    if (run.number == who->where.sound.front()) found.other_gb_per_s = speed_of(run).value_or(0);
  }
  return found;
}

// --- stragglers ---

double own_share(const RankRun& rank) {
  return rank.timings.empty() ? 0 : rank.timings.back().own_seconds;
}

double median_of_others(const Experiment& run, const RankRun& left_out) {
  std::vector<double> others;
  for (const RankRun& rank : run.ranks) {
    if (rank.place != left_out.place) others.push_back(own_share(rank));
  }
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::ranges::nth_element(others, middle);
  return *middle;
}

// Its own part, before it hands over: more than twice that of the others, and a real part of all.
bool straggles(const Experiment& run, const RankRun& rank) {
  constexpr double kTimes = 2;
  constexpr double kPart = 0.1;
  const double own = own_share(rank);
  return own > kTimes * median_of_others(run, rank) && own > kPart * rank.timings.back().seconds;
}

std::vector<RunPlace> stragglers(const Experiment& run) {
  std::vector<RunPlace> places;
  if (run.ranks.size() < 3) return places;
  for (const RankRun& rank : run.ranks) {
    if (!rank.timings.empty() && straggles(run, rank)) places.push_back(rank.place);
  }
  return places;
}

std::vector<RunPlace> in_every_round(const Ask& ask, const std::vector<int>& rounds) {
  std::map<RunPlace, std::size_t> seen;
  for (const Experiment& run : ask.cluster->experiments) {
    if (std::ranges::find(rounds, run.number) == rounds.end()) continue;
    for (const RunPlace& place : stragglers(run)) ++seen[place];
  }
  std::vector<RunPlace> places;
  for (const auto& [place, times] : seen) {
    if (times == rounds.size()) places.push_back(place);
  }
  return ask.series->in_order(places);
}

}  // namespace

Found find_straggler(const Ask& ask) {
  DD_TRY(const Reading rounds, ask.series->ask(ask.baseline(), 2));
  if (!rounds.sick()) return std::nullopt;
  const auto blamed = in_every_round(ask, rounds.numbers);
  const auto rest = without(ask.shape->places, blamed);
  if (blamed.empty() || rest.size() < 2) return std::nullopt;
  DD_TRY(const Reading sound,
         ask.series->ask({.what = "only " + places_text(rest), .places = rest}, 2));
  if (!sound.sound()) return std::nullopt;
  Isolation found = slow(ask, Layer::straggler, rounds.gb_per_s, std::nullopt);
  found.places = blamed;
  const auto node = on_node(ask.shape->places, blamed.front().node);
  if (node == blamed && node.size() > 1) found.places = {{node.front().node, -1}};
  found.other_gb_per_s = sound.gb_per_s;
  found.proof = proof_of(rounds.numbers, sound.numbers);
  return found;
}

Found find_slow(const Ask& ask, double speed, const std::optional<LinkLimit>& limit) {
  DD_TRY(auto better, fastest(ask, limit));
  if (!better || !good_enough(better->gb_per_s, limit)) {
    DD_TRY(const auto hca, without_slow_hca(ask));
    if (hca && (!better || hca->gb_per_s > better->gb_per_s)) better = hca;
  }
  if (better) {
    DD_TRY(auto found, faster_with(ask, *better, speed, limit));
    if (found) return found;
  }
  if (!limit) return std::nullopt;
  DD_TRY(auto place, by_place(ask, speed, limit));
  if (place) return place;
  DD_TRY(const Reading rounds, ask.series->ask(ask.baseline(), 2));
  if (!rounds.sick()) return std::nullopt;
  Isolation found = slow(ask, Layer::none, speed, limit);
  found.proof = rounds.numbers;
  return found;
}

}  // namespace distdoctor::bisect
