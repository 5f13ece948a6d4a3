// Resource limits (getrlimit(2)): memlock, nofile, nproc, stack, core.
#pragma once

#include <distdoctor/facts/host.h>

#include "base/error.h"

#include <map>
#include <string>

namespace distdoctor::machine {

// Ours, or those of the process that was named to keep_limits_of.
Result<std::map<std::string, Limit>> read_limits();

// From now on read_limits gives those of this process, as they are at this moment: whoever looks
// from inside its world wants its limits and not ours. Before any thread is started.
void keep_limits_of(int pid);

}  // namespace distdoctor::machine
