// Whose settings? Lays what was said, seen and inherited over one another, each with its origin.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/job.h>

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

// Names that may leave a process: MASTER_*, WORLD_SIZE, RANK, NCCL_*, GLOO_*, TORCH_*, SLURM_*, ...
// never a token, key, password or proxy's password.
bool may_leave_a_process(std::string_view name);
// Those of one rank: RANK, LOCAL_RANK, ... which do not travel from the coordinator to the peers.
bool per_rank(std::string_view name);

// What the coordinator knows before any node was asked: command line, options, own environment.
struct Said {
  std::vector<Launch> launches = {};
  Settings command_line = {};
  Settings options = {};
  Settings environment = {};  // own; a launcher's variables are told by their names
};
// Adds what the nodes' live training processes say; fills job.settings, launches, nccl, gloo,
// ranks_per_node. `nodes` may be empty.
JobSpec resolve_job(const Said& said,
                    const std::vector<std::string>& peers,
                    const std::vector<NodeFacts>& nodes);

}  // namespace distdoctor::rules
