// Which of a node's processes are ranks; look-ups that the checks of several areas share.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace distdoctor {

// The whole text must be a number.
inline std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

inline std::optional<int> number(const TrainingProcess& process, const std::string& name) {
  const auto text = variable(process, name);
  return text ? number(*text) : std::nullopt;
}

// A data loader or a shell around the worker has the worker's environment: of one family on a node
// the eldest with a rank counts.
inline bool inherited(const std::vector<TrainingProcess>& all, const TrainingProcess& process) {
  const auto rank = variable(process, "RANK");
  int parent = process.parent;
  for (std::size_t steps = 0; steps < all.size(); ++steps) {
    const auto found = std::ranges::find(all, parent, &TrainingProcess::pid);
    if (found == all.end()) return false;
    if (found->role == ProcessRole::worker && variable(*found, "RANK") == rank) return true;
    parent = found->parent;
  }
  return false;
}

}  // namespace distdoctor
