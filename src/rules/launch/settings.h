// Whose settings? Lays what was said, seen and inherited over one another, each with its origin.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/job.h>

#include "base/secrets.h"
#include "rules/launch/command_line.h"

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

using distdoctor::may_leave_a_process;  // base/secrets.h
// Those of one rank: RANK, LOCAL_RANK, ... which do not travel from the coordinator to the peers.
bool per_rank(std::string_view name);
// What srun or `mpirun -x` would hand to every rank: MASTER_*, WORLD_SIZE, NNODES, NCCL_*, GLOO_*,
// TORCH_*, UCX_*, FI_*, ...
bool shared_by_all(std::string_view name);

// What the coordinator knows before any node was asked: command line, options, own environment.
struct Said {
  CommandReading command = {};  // of `-- COMMAND ...`
  Settings options = {};        // --master, --env, and DISTDOCTOR_BACKEND (nccl|gloo) of --backend
  Settings environment = {};    // own; a launcher's variables are told by their names
};
// Adds what the nodes' live training processes say; fills job.settings, launches, nccl, gloo,
// ranks_per_node. `nodes` may be empty.
JobSpec resolve_job(const Said& said,
                    const std::vector<std::string>& peers,
                    const std::vector<NodeFacts>& nodes);

}  // namespace distdoctor::rules
