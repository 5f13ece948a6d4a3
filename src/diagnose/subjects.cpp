#include "diagnose/subjects.h"

#include <algorithm>
#include <utility>

namespace distdoctor::diagnose {
namespace {

bool whole_job(const Subjects& subjects) {
  return subjects.nodes.empty() && subjects.ranks.empty() && subjects.devices.empty() &&
         subjects.pairs.empty();
}

bool only_pairs(const Subjects& subjects) {
  return !subjects.pairs.empty() && subjects.nodes.empty();
}

template <class Range>
bool meet(const Range& a, const Range& b) {
  return std::ranges::any_of(
      a, [&](const auto& item) { return std::ranges::find(b, item) != b.end(); });
}

bool pairs_meet(const Subjects& a, const Subjects& b) {
  return std::ranges::any_of(a.pairs, [&](const auto& pair) {
    const std::pair reversed(pair.second, pair.first);
    return std::ranges::find(b.pairs, pair) != b.pairs.end() ||
           std::ranges::find(b.pairs, reversed) != b.pairs.end();
  });
}

}  // namespace

std::set<std::string> nodes_of(const Subjects& subjects) {
  std::set<std::string> nodes(subjects.nodes.begin(), subjects.nodes.end());
  for (const auto& [from, to] : subjects.pairs) {
    nodes.insert(from);
    nodes.insert(to);
  }
  for (const std::string& device : subjects.devices) {
    nodes.insert(device.substr(0, device.find('/')));
  }
  nodes.erase("");
  return nodes;
}

bool overlap(const Subjects& a, const Subjects& b) {
  if (whole_job(a) || whole_job(b)) return true;
  if (!a.devices.empty() && !b.devices.empty()) return meet(a.devices, b.devices);
  if (only_pairs(a) && only_pairs(b)) return pairs_meet(a, b);
  if (nodes_of(a).empty() && nodes_of(b).empty()) return meet(a.ranks, b.ranks);
  return meet(nodes_of(a), nodes_of(b));
}

}  // namespace distdoctor::diagnose
