// Acts out what bisect plans: one experiment after the other, each in fresh processes.
#pragma once

#include <distdoctor/facts.h>

#include "base/deadline.h"
#include "fleet/fleet.h"

#include <chrono>
#include <string>

namespace distdoctor::exam {

struct RunLimits {
  Deadline deadline;                        // of all experiments
  std::chrono::milliseconds stage{15'000};  // what a rank may take from one line to the next
  std::string nccl_library = {};            // empty: the one that the node's facts name
};

// Runs it: fills its ranks' results, its outcome, what of its switches was not heeded, its seconds.
void run_experiment(Experiment& experiment,
                    const ClusterFacts& cluster,
                    fleet::Fleet& fleet,
                    const RunLimits& limits);

}  // namespace distdoctor::exam
