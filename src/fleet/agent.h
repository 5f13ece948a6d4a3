// The agent's side, with what tests may put in the place of the real collectors.
#pragma once

#include "collect/collect.h"

#include <span>

namespace distdoctor::fleet {

int run_agent(int in_fd, int out_fd, std::span<const collect::Collector> collectors);

}  // namespace distdoctor::fleet
