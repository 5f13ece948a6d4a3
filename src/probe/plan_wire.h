// Which wires to measure between the nodes of a collective, and when; pure.
#pragma once

#include <distdoctor/facts.h>

#include "probe/plan.h"

#include <cstdint>
#include <vector>

namespace distdoctor::probe {

struct WireLimits {
  int speed_ms = 1000;  // for each number of streams
  int streams = 8;      // the larger number, unless the job's settings say how many NCCL opens
};

// Rounds without dials, one after the other. In each a node takes part in one measurement at most,
// alone, by one stream and by several; the ring of the nodes is measured in both directions, so
// that their number does not matter. In the last round each node sends to its successor at the same
// time, as in a collective: what is slower there, the processors or the switch hold up.
//
// `baseline` tells nodes, backend and whether the data went over TCP. Empty: it did not work, there
// is one node, RDMA carries the data, or no path between the nodes was measured before.
std::vector<Round> plan_wires(const ClusterFacts& cluster,
                              const Experiment& baseline,
                              const WireLimits& limits,
                              std::uint64_t nonce_seed);

// After these rounds: what looked slow, by the larger number of streams and alone, once more.
std::vector<Round> confirm_wires(const ClusterFacts& cluster, const std::vector<Round>& rounds);

}  // namespace distdoctor::probe
