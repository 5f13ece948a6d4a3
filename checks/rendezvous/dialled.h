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

inline Decisive decisive_dial(const ClusterFacts& cluster, const NodeFacts& from) {
  auto all = dials_to_master(cluster, from);
  // Of several addresses of the name one is its own: it tries them all, and that one answers.
  const auto& master = cluster.predicted.master;
  if (master && master->node == from.host) return {.tried = true};
  std::erase_if(all, [&](const Decisive& tried) { return tried.to == from.host; });
  if (all.empty()) return {};
  const bool got_through = std::ranges::any_of(
      all, [](const Decisive& tried) { return tried.dial->outcome == Outcome::ok; });
  if (got_through) return {.tried = true};
  return std::ranges::min(all, {}, [](const Decisive& tried) { return telling(*tried.dial); });
}

}  // namespace distdoctor::checks
