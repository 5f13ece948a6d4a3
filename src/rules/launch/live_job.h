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

// Of several jobs the one with the most processes is taken, orphans left out; one that waits on
// another MASTER_PORT than `known` says is another job and gives nothing.
LiveJob live_job(const std::vector<NodeFacts>& nodes, const Settings& known);

}  // namespace distdoctor::rules
