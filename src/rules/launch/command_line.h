// Command lines and shell scripts of launchers, read and never run.
#pragma once

#include <distdoctor/job.h>

#include "base/error.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

struct CommandReading {
  std::vector<Launch> launches = {};  // outermost first
  Settings settings = {};    // exports, `X=... cmd`, -x X=..., --export, --master_addr, ...
  Settings fallbacks = {};   // X=${X:-value}: what holds where the environment has no X
  Settings unresolved = {};  // set, but to what only the job's shell knows; as written
  Settings each_task = {};   // of these: what each task's own shell works out, "$(hostname)"
  std::vector<std::string> notes = {};  // what was named and not read: "run.sh: cannot be read"
};

// Gives the text of a script that a command line names; none when it cannot be read. Asked for at
// most 16 files; more than 1 MiB of one is not looked at.
using ScriptReader = std::function<std::optional<std::string>(const std::string& path)>;

// `argv` as the shell gave it to us: torchrun, python -m torch.distributed.run/launch, srun,
// mpirun, accelerate launch, deepspeed, python script.py, bash run.sh, env X=Y cmd.
Result<CommandReading> read_command(const std::vector<std::string>& argv, const ScriptReader& read);
CommandReading read_script(std::string_view text,
                           const std::string& path,
                           const ScriptReader& read);

}  // namespace distdoctor::rules
