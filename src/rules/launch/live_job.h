// The job that is running on the nodes, as its processes' own environments tell.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/job.h>

#include <optional>
#include <vector>

namespace distdoctor::rules {

struct LiveJob {
  Settings settings = {};  // shared ones only
  std::vector<Launch> launches = {};
  std::optional<int> ranks_per_node = {};
  bool maps_nccl = false;
};

// Of several jobs the one with the most processes is taken. Left out are a lone orphan, a job that
// waits on another MASTER_PORT than `known` says, and, where there are several nodes, a job that is
// whole on one of them: its loopback master is none of the others' business.
LiveJob live_job(const std::vector<NodeFacts>& nodes, const Settings& known);

// A worker whose job has all its ranks on this node, as torchrun says or as they are numbered.
bool job_of_one_node(const NodeFacts& node, const TrainingProcess& process);

}  // namespace distdoctor::rules
