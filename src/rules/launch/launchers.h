// What the flags of each launcher mean. Texts may hold the marks of shell_scope.h.
#pragma once

#include <distdoctor/job.h>

#include "rules/launch/flags.h"
#include "rules/launch/shell_scope.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace distdoctor::rules {

// How many nodes and tasks an allocation has: flags of srun and sbatch, #SBATCH lines.
struct Allocation {
  std::optional<int> nodes = {};
  std::optional<int> tasks = {};
  std::optional<int> tasks_per_node = {};
};

extern const FlagTable kTorchrunFlags;    // torch/distributed/run.py, 1.13 to 2.9
extern const FlagTable kSlurmFlags;       // man srun, sbatch, salloc; 22.05 to 25.05
extern const FlagTable kMpiFlags;         // man mpirun of Open MPI 4 and 5, mpiexec.hydra
extern const FlagTable kAccelerateFlags;  // accelerate/commands/launch.py, 0.20 to 1.10
extern const FlagTable kDeepspeedFlags;   // deepspeed/launcher/runner.py, 0.9 to 0.17

// `environment`: torchrun takes each flag that is missing from PET_<FLAG> (run.py, class env).
Launch torchrun_launch(const Flags& flags, const Scope& environment);
Launch accelerate_launch(const Flags& flags);
Launch deepspeed_launch(const Flags& flags);
// srun's own flags, else what its allocation says.
Launch srun_launch(const Flags& flags, const Allocation& allocation);
Launch mpirun_launch(const Flags& flags);
void read_allocation(const Flags& flags, Allocation& allocation);

// A whole number from 0 to a million; none where it is unresolved or anything else.
std::optional<int> count_of(const std::string* text);

}  // namespace distdoctor::rules
