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
inline Decisive decisive_dial(const ClusterFacts& cluster, const NodeFacts& from) {
  Decisive decisive;
  for (const PairFacts& pair : cluster.pairs) {
    if (pair.from != from.host || pair.to == from.host) continue;
    for (const Dial& dial : pair.dials) {
      if (dial.purpose != Purpose::master) continue;
      if (dial.outcome == Outcome::ok) return {.tried = true};
      decisive.tried = true;
      if (decisive.dial != nullptr && telling(*decisive.dial) >= telling(dial)) continue;
      decisive.dial = &dial;
      decisive.to = pair.to;
    }
  }
  return decisive;
}

}  // namespace distdoctor::checks
