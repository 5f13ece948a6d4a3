// "Did you mean ...": the known word nearest to one that nobody knows.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace distdoctor {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`, case ignored.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Nothing where even the best is more than a third of the word away. The first of equals wins.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> known);

// " (did you mean 'net'?)", or "" where nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace distdoctor
