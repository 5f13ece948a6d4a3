#include "rules/slip.h"

#include "base/nearest.h"
#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace distdoctor::rules {
namespace {

// The same letters without the lines between them, or the same words in another order.
bool same_but_for_order(std::string_view name, std::string_view known) {
  auto mine = split(name, '_');
  auto theirs = split(known, '_');
  if (join(mine, "") == join(theirs, "")) return true;
  std::ranges::sort(mine);
  std::ranges::sort(theirs);
  return mine == theirs;
}

std::size_t allowed_slips(std::string_view name) {
  constexpr std::size_t kShort = 9;
  constexpr std::size_t kLong = 14;
  if (name.size() < kShort) return 0;
  return name.size() < kLong ? 1 : 2;
}

}  // namespace

KnownNames::KnownNames(std::vector<std::string_view> names,
                       const std::vector<std::string_view>& rare)
    : names_(std::move(names)) {
  for (const std::string_view name : names_) {
    for (const std::string_view word : split(name, '_')) words_.insert(word);
  }
  for (const std::string_view word : rare) words_.erase(word);
}

bool KnownNames::contains(std::string_view name) const {
  return std::ranges::find(names_, name) != names_.end();
}

// A word that stands in none of the names, and long enough to be a slip: a new name of three
// letters (RMA, GIN, PAT) is near to many others.
bool KnownNames::may_hold_a_slip(std::string_view name) const {
  constexpr std::size_t kFewest = 4;
  return std::ranges::any_of(split(name, '_'), [&](std::string_view word) {
    return word.size() >= kFewest && !words_.contains(word);
  });
}

std::optional<std::string_view> KnownNames::meant(std::string_view name) const {
  constexpr std::size_t kLongest = 64;  // the distance is quadratic, and the name is foreign
  if (name.size() > kLongest || contains(name)) return std::nullopt;
  for (const std::string_view known : names_) {
    if (same_but_for_order(name, known)) return known;
  }
  if (!may_hold_a_slip(name)) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t smallest = allowed_slips(name) + 1;
  for (const std::string_view known : names_) {
    const std::size_t distance = edit_distance(name, known);
    if (distance < smallest) {
      smallest = distance;
      best = known;
    }
  }
  return best;
}

}  // namespace distdoctor::rules
