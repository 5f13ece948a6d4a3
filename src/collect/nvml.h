// What the NVIDIA driver's management library tells of the GPUs.
#pragma once

#include <distdoctor/facts/nvml.h>
#include <distdoctor/observed.h>

#include "base/deadline.h"

namespace distdoctor::machine {
class Machine;
}

namespace distdoctor::collect {

// Whether an NVIDIA driver is loaded here, or its device nodes are there.
bool has_nvidia_driver(const machine::Machine& machine);

// Asks the helper, whatever is loaded. `timed_out`: a driver that hangs, or one that has to wake
// many GPUs first.
Observed<Nvml> ask_nvml(const machine::Machine& machine, Deadline deadline);

}  // namespace distdoctor::collect
