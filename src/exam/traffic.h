// Acts out a probe plan over the fleet and puts what it showed into the facts.
#pragma once

#include <distdoctor/facts.h>

#include "base/deadline.h"
#include "fleet/fleet.h"
#include "probe/plan.h"

#include <atomic>
#include <chrono>
#include <vector>

namespace distdoctor::exam {

struct TrafficLimits {
  Deadline deadline;                  // of all of it
  std::chrono::milliseconds timeout;  // of a step that takes no time on a healthy node
  const std::atomic<bool>* interrupted = nullptr;
};

// Fills cluster.pairs, cluster.untried and the nodes' `duplicates`. Ends by the deadline, or soon
// after an interruption; what has no outcome then leaves its pair incomplete. A node that does not
// answer one step in its time is not asked again, so that the others keep theirs.
void send_traffic(const probe::ProbePlan& plan,
                  fleet::Fleet& fleet,
                  const TrafficLimits& limits,
                  ClusterFacts& cluster);

// Rounds of probe::plan_wires(), and those that confirm what looked slow: fills Path::wire.
void measure_wires(const std::vector<probe::Round>& rounds,
                   fleet::Fleet& fleet,
                   const TrafficLimits& limits,
                   ClusterFacts& cluster);

}  // namespace distdoctor::exam
