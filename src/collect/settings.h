// What our own environment and NCCL's configuration files say on this machine.
#pragma once

#include <distdoctor/job.h>

#include "machine/machine.h"

#include <string_view>

namespace distdoctor::collect {

// Whether a launcher set the variable, as its name and the other variables tell.
Source source_of(std::string_view name, const machine::Environment& environment);

// Environment over user file over /etc/nccl.conf. The user's file is NCCL_CONF_FILE, or else
// ~/.nccl.conf in the home of the password database, as NCCL has it (2.23+).
Settings read_settings(const machine::Machine& machine);

}  // namespace distdoctor::collect
