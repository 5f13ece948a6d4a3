// The RDMA part of a probe plan.
#pragma once

#include <distdoctor/facts.h>

#include "probe/plan.h"

namespace distdoctor::probe {

// Between the ports that NCCL would use, the first of a node with the first of another: those of
// one rail. Neighbours first, each with all rails; a node has limits.rdma_ends_per_node ends.
void plan_rdma(const ClusterFacts& cluster, const PlanLimits& limits, ProbePlan& plan);

}  // namespace distdoctor::probe
