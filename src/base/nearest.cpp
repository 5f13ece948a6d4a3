#include "base/nearest.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace distdoctor {
namespace {

using Row = std::vector<std::size_t>;

// One row of the table of optimal string alignment: distances of a[0..i] to every b[0..j].
Row next_row(
    std::string_view a, std::string_view b, std::size_t i, const Row& above, const Row& two) {
  Row row(b.size() + 1);
  row[0] = i + 1;
  for (std::size_t j = 0; j < b.size(); ++j) {
    const std::size_t replaced = above[j] + (a[i] == b[j] ? 0 : 1);
    row[j + 1] = std::min({replaced, above[j + 1] + 1, row[j] + 1});
    const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
    if (swapped) row[j + 1] = std::min(row[j + 1], two[j - 1] + 1);
  }
  return row;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::string from = to_lower(a);
  const std::string to = to_lower(b);
  Row two;
  Row above(to.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    Row row = next_row(from, to, i, above, two);
    two = std::exchange(above, std::move(row));
  }
  return above.back();
}

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> known) {
  constexpr std::size_t kLongestWord = 256;  // the table is quadratic, and the word is foreign
  if (word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t smallest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < smallest) {
      smallest = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const std::optional<std::string_view> best = nearest(word, known);
  return best ? fmt::format(" (did you mean '{}'?)", *best) : "";
}

}  // namespace distdoctor
