// From the nodes' facts to the runs and what they isolate.
#pragma once

#include "exam/exam.h"
#include "exam/experiments.h"

namespace distdoctor::exam {

// Processes that a collective of ours would disturb, or that would disturb it: those of a training
// job, and of NCCL whoever computes on a GPU. "node0: pid 71 (python train.py)".
std::vector<std::string> busy_with(const ClusterFacts& cluster, const Bisection& wanted);

// The runs that would be made first, one line each.
std::vector<std::string> tree_of(const ClusterFacts& cluster, const Bisection& wanted);

// Runs until the planner has an answer, or `deadline`: cluster.experiments and cluster.isolations.
// Why they isolate nothing where something is wrong all the same; empty otherwise.
std::string bisect(const Bisection& wanted,
                   fleet::Fleet& fleet,
                   Deadline deadline,
                   const std::atomic<bool>* interrupted,
                   ClusterFacts& cluster);

// Of recorded experiments: what they isolate, by today's rules.
void isolate_again(ClusterFacts& cluster);

}  // namespace distdoctor::exam
