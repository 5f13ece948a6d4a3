// Which dial to MASTER_ADDR:MASTER_PORT speaks for a node.
#pragma once

#include <distdoctor/firewall_fix.h>
#include <distdoctor/reading.h>

#include "ranks.h"

namespace distdoctor::checks {

// The most telling failure comes first: where a name has several addresses, one may have no route.
inline int telling(const Dial& dial) {
  switch (dial.outcome) {
    case Outcome::local_error:
      return 0;
    case Outcome::net_unreachable:
      return 1;
    case Outcome::host_unreachable:
      return 2;
    default:
      return 3;
  }
}

// The node's dial to the master that speaks for it; null: one went well, or none was made.
struct Decisive {
  const Dial* dial = nullptr;
  std::string to = {};
  bool tried = false;
};
inline std::vector<Decisive> dials_to_master(const ClusterFacts& cluster, const NodeFacts& from) {
  std::vector<Decisive> all;
  for (const PairFacts& pair : cluster.pairs) {
    if (pair.from != from.host) continue;
    for (const Dial& dial : pair.dials) {
      if (dial.purpose == Purpose::master) all.push_back({&dial, pair.to, true});
    }
  }
  return all;
}

// Rank 0 connects to its own store, too. Of several addresses of the name one is its own: it tries
// them all, and those that it does not have are no matter. That nobody listens yet is the others'.
inline bool beside_the_point(const Decisive& tried, const NodeFacts& from, bool at_master) {
  const bool to_itself = tried.to == from.host;
  if (!at_master) return to_itself;
  return !to_itself || (tried.dial->outcome == Outcome::refused && !tried.dial->ours);
}

inline Decisive decisive_dial(const ClusterFacts& cluster, const NodeFacts& from) {
  auto all = dials_to_master(cluster, from);
  const auto& master = cluster.predicted.master;
  const bool at_master = master && master->node == from.host;
  std::erase_if(all,
                [&](const Decisive& tried) { return beside_the_point(tried, from, at_master); });
  if (all.empty() && at_master) return {.tried = true};
  if (all.empty()) return {};
  const bool got_through = std::ranges::any_of(
      all, [](const Decisive& tried) { return tried.dial->outcome == Outcome::ok; });
  if (got_through) return {.tried = true};
  return std::ranges::min(all, {}, [](const Decisive& tried) { return telling(*tried.dial); });
}

}  // namespace distdoctor::checks
