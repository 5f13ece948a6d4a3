// Acts out a probe plan over the fleet and puts what it showed into the facts.
#pragma once

#include <distdoctor/facts.h>

#include "base/deadline.h"
#include "fleet/fleet.h"
#include "probe/plan.h"

namespace distdoctor::exam {

// Fills cluster.pairs and the nodes' `duplicates`. Ends by the deadline; what has no outcome then
// leaves its pair incomplete.
void send_traffic(const probe::ProbePlan& plan,
                  fleet::Fleet& fleet,
                  Deadline deadline,
                  ClusterFacts& cluster);

}  // namespace distdoctor::exam
