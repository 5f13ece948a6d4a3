#include "bisect/places.h"

#include "base/error.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace distdoctor::bisect {
namespace {

bool inside_nodes(Layer layer) {
  return layer == Layer::p2p || layer == Layer::shm || layer == Layer::nvls ||
         layer == Layer::cumem;
}

bool between_nodes(Layer layer) {
  return layer == Layer::ib || layer == Layer::gdr || layer == Layer::hca ||
         layer == Layer::plugin || layer == Layer::interface || layer == Layer::pxn;
}

std::vector<Unit> shared_nodes(const std::vector<Unit>& nodes) {
  std::vector<Unit> shared;
  std::ranges::copy_if(nodes, std::back_inserter(shared),
                       [](const Unit& node) { return node.members.size() > 1; });
  return shared;
}

std::vector<Unit> others_of(std::vector<Unit> units, const Unit& left_out) {
  std::erase(units, left_out);
  return units;
}

// What a search has found; where it ran out of runs, what was known before.
Known<Where> or_else(Known<Where> found, Where coarse) {
  if (!found && !out_of_runs(found.error())) return found;
  if (!found || found->units.empty()) return coarse;
  return found;
}

// The whole node, against the others.
Known<Where> whole_node(const Search& search, const Unit& node, const std::vector<Unit>& nodes) {
  DD_TRY(const Reading sick, search.run({node}, 2));
  if (!sick.sick()) return Where{};
  Where where{.units = {node}, .sick = sick.numbers};
  const std::vector<Unit> others = others_of(nodes, node);
  if (others.empty()) return where;
  DD_TRY(const Reading sound, search.run(others, 2));
  if (sound.sound()) where.sound = sound.numbers;
  return where;
}

Known<Where> in_node(const Search& search, const Unit& node, const std::vector<Unit>& nodes) {
  Where whole{.units = {node}};
  Known<Where> confirmed = whole_node(search, node, nodes);
  if (!confirmed && !out_of_runs(confirmed.error())) return confirmed;
  if (confirmed && !confirmed->units.empty()) whole = *confirmed;
  if (node.members.size() < 2) return whole;
  return or_else(search.among(units_of_devices(node.members)), whole);
}

Known<Where> of_layer_inside(const Ask& ask) {
  const Search search(*ask.series, {}, 2);
  const std::vector<Unit> nodes = shared_nodes(units_of_nodes(ask.shape->places));
  DD_TRY(const std::vector<Unit> found, search.sick_alone(nodes));
  if (found.empty() || (found.size() == nodes.size() && nodes.size() > 1)) return Where{};
  if (found.size() > 1) return Where{.units = found};
  return in_node(search, found.front(), nodes);
}

// --- no switch helps ---

Layer layer_of(const Where& where) {
  if (where.pair) return Layer::link;
  return where.units.front().place.device < 0 ? Layer::node : Layer::gpu;
}

// Single ranks, two of each node: when even these are sick it is not a matter of one place, nor of
// who talks to whom.
Known<std::optional<Culprit>> nothing_runs(const Ask& ask, const Search& search) {
  std::vector<Unit> singles;
  for (const Unit& node : units_of_nodes(ask.shape->places)) {
    singles.push_back({.place = node.members.front(), .members = {node.members.front()}});
    if (node.members.size() < 2) continue;
    singles.push_back({.place = node.members.back(), .members = {node.members.back()}});
  }
  for (const Unit& single : singles) {
    DD_TRY(const Reading alone, search.run({single}));
    if (!alone.sick()) return std::nullopt;
  }
  DD_TRY(const Reading again, search.run({singles.front()}, 2));
  if (!again.sick()) return std::nullopt;
  return Culprit{.layer = Layer::setup, .where = {.sick = again.numbers}};
}

Known<std::optional<Culprit>> named(Known<Where> found) {
  if (!found) return std::unexpected(std::move(found).error());
  if (found->units.empty() || found->sick.empty() || found->sound.empty()) return std::nullopt;
  return Culprit{.layer = layer_of(*found), .where = *found};
}

// Each node is sound alone: it is one of them, or what lies between two.
Known<std::optional<Culprit>> among_nodes(const Ask& ask,
                                          const Search& search,
                                          const std::vector<Unit>& nodes,
                                          bool slow) {
  if (nodes.size() > 2) return named(search.among(nodes));
  if (slow) return std::nullopt;
  DD_TRY(const Reading sick, ask.series->ask(ask.baseline(), 2));
  DD_TRY(const Reading one, search.run({nodes.front()}, 2));
  DD_TRY(const Reading other, search.run({nodes.back()}, 2));
  if (!sick.sick() || !one.sound() || !other.sound()) return std::nullopt;
  return Culprit{.layer = Layer::link,
                 .where = {.units = nodes,
                           .pair = true,
                           .sick = sick.numbers,
                           .sound = proof_of(one.numbers, other.numbers)}};
}

Known<std::optional<Culprit>> several_nodes(const Search& search,
                                            const std::vector<Unit>& sick,
                                            std::vector<Unit> rest) {
  Where where{.units = sick};
  for (const Unit& node : sick) {
    DD_TRY(const Reading again, search.run({node}, 2));
    if (again.sick())
      where.sick.insert(where.sick.end(), again.numbers.begin(), again.numbers.end());
    std::erase(rest, node);
  }
  DD_TRY(const Reading sound, search.run(rest, 2));
  if (!sound.sound()) return std::nullopt;
  where.sound = sound.numbers;
  return named(where);
}

}  // namespace

Known<Where> place_of_layer(const Ask& ask, Layer layer) {
  const std::vector<Unit> nodes = units_of_nodes(ask.shape->places);
  if (inside_nodes(layer)) return or_else(of_layer_inside(ask), {});
  if (!between_nodes(layer) || nodes.size() < 3) return Where{};
  return or_else(Search(*ask.series, {}, nodes.front().members.size() + 1).among(nodes), {});
}

Known<std::optional<Culprit>> culprit(const Ask& ask, bool slow) {
  const std::vector<Unit> nodes = units_of_nodes(ask.shape->places);
  const Search search(*ask.series, {}, slow ? 2 : 1);
  DD_TRY(const std::vector<Unit> found, search.sick_alone(nodes));
  if (found.empty()) return among_nodes(ask, search, nodes, slow);
  if (found.size() == nodes.size() && !slow) {
    DD_TRY(auto nothing, nothing_runs(ask, search));
    if (nothing) return nothing;
  }
  if (found.size() == 1) return named(in_node(search, found.front(), nodes));
  if (found.size() == nodes.size()) return std::nullopt;
  return several_nodes(search, found, nodes);
}

}  // namespace distdoctor::bisect
