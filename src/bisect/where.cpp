#include "bisect/where.h"

#include "base/error.h"
#include "base/text.h"

#include <utility>

namespace distdoctor::bisect {
namespace {

constexpr std::size_t kFewNodes = 8;  // that are each tried alone

std::vector<RunPlace> members_of(const std::vector<Unit>& units) {
  std::vector<RunPlace> places;
  for (const Unit& unit : units) {
    places.insert(places.end(), unit.members.begin(), unit.members.end());
  }
  return places;
}

std::vector<Unit> minus(std::vector<Unit> units, const std::vector<Unit>& left_out) {
  std::erase_if(
      units, [&](const Unit& unit) { return std::ranges::find(left_out, unit) != left_out.end(); });
  return units;
}

std::string devices_text(const std::vector<int>& devices) {
  const bool row = devices.back() - devices.front() + 1 == static_cast<int>(devices.size());
  if (row && devices.size() > 1) {
    return std::to_string(devices.front()) + "-" + std::to_string(devices.back());
  }
  std::vector<std::string> each;
  for (const int device : devices) each.push_back(std::to_string(device));
  return join(each, ",");
}

}  // namespace

std::vector<Unit> units_of_nodes(const std::vector<RunPlace>& places) {
  std::vector<Unit> units;
  for (const RunPlace& place : places) {
    auto unit =
        std::ranges::find_if(units, [&](const Unit& one) { return one.place.node == place.node; });
    if (unit == units.end()) {
      unit = units.insert(unit, {.place = {.node = place.node, .device = -1}});
    }
    unit->members.push_back(place);
  }
  return units;
}

std::vector<Unit> units_of_devices(const std::vector<RunPlace>& places) {
  std::vector<Unit> units;
  for (const RunPlace& place : places) units.push_back({.place = place, .members = {place}});
  return units;
}

std::string places_text(const std::vector<RunPlace>& places) {
  std::vector<std::string> texts;
  for (const Unit& unit : units_of_nodes(places)) {
    std::vector<int> devices;
    for (const RunPlace& place : unit.members) devices.push_back(place.device);
    texts.push_back(unit.place.node + ":" + devices_text(devices));
  }
  return join(texts, " ");
}

Known<Reading> Search::run(const std::vector<Unit>& units, int at_least) const {
  Setup setup{.switches = switches_, .places = series_->in_order(members_of(units))};
  setup.what = "only " + places_text(setup.places);
  return series_->ask(setup, at_least);
}

// A run that proves nothing counts as sound: it is no reason to blame a place.
Known<bool> Search::sick(const std::vector<Unit>& units) const {
  if (members_of(units).size() < least_) return false;
  DD_TRY(const Reading reading, run(units));
  return reading.sick();
}

// Twice: a verdict hangs on it.
Known<bool> Search::with_partner(const Unit& unit, const Unit& partner) const {
  DD_TRY(const Reading reading, run({unit, partner}, 2));
  return reading.sick();
}

// The verdict on places stands on a repetition, and on the others being sound without them.
Known<Where> Search::confirmed(Where where,
                               const std::vector<Unit>& sick_group,
                               const std::vector<Unit>& rest) const {
  DD_TRY(const Reading again, run(sick_group, 2));
  if (!again.sick()) return Where{};
  where.sick = again.numbers;
  DD_TRY(const Reading without, run(rest, 2));
  if (!without.sound()) return Where{};
  where.sound = without.numbers;
  return where;
}

// Which of two that fail together fails with others, too; with neither it is what lies between.
Known<Where> Search::pair(const std::vector<Unit>& two, const std::vector<Unit>& rest) const {
  if (rest.empty()) return Where{.pair = true};
  const Unit& partner = rest.front();
  DD_TRY(const bool first, with_partner(two.front(), partner));
  DD_TRY(const bool second, with_partner(two.back(), partner));
  if (first == second) return confirmed({.units = two, .pair = !first}, two, rest);
  const Unit& bad = first ? two.front() : two.back();
  const Unit& good = first ? two.back() : two.front();
  return confirmed({.units = {bad}}, {bad, partner}, where_detail::joined({good}, rest));
}

Known<Where> Search::among(const std::vector<Unit>& units) const {
  const IsSick<Unit> is_sick = [this](const std::vector<Unit>& some) { return sick(some); };
  DD_TRY(const std::vector<Unit> blamed, smallest(is_sick, units));
  const std::vector<Unit> rest = minus(units, blamed);
  if (blamed.empty() || blamed.size() > 2) return Where{};
  DD_TRY(const bool others, sick(rest));
  if (others) return Where{};
  if (blamed.size() == 2) return pair(blamed, rest);
  return rest.empty() ? Where{} : confirmed({.units = blamed}, blamed, rest);
}

Known<std::vector<Unit>> Search::sick_alone(const std::vector<Unit>& units) const {
  if (units.size() > kFewNodes) {
    const IsSick<Unit> is_sick = [this](const std::vector<Unit>& some) { return sick(some); };
    DD_TRY(std::vector<Unit> found, smallest(is_sick, units));
    return found.size() == 1 ? found : std::vector<Unit>{};
  }
  std::vector<Unit> found;
  for (const Unit& unit : units) {
    DD_TRY(const bool alone, sick({unit}));
    if (alone) found.push_back(unit);
  }
  return found;
}

}  // namespace distdoctor::bisect
