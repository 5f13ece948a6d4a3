// The program that we are: what runs as an agent here, elsewhere, and what --push sends.
#pragma once

#include "base/error.h"
#include "fleet/fleet.h"
#include "fleet/launch.h"

#include <memory>
#include <string>

namespace distdoctor::fleet {

// Its path, or /proc/self/exe when it was replaced or deleted since we started.
std::string own_program();
Program remote_program(const LaunchOptions& options);
// What --push sends: the program with its helpers behind it. Read once and shared by all peers.
Result<std::shared_ptr<const std::string>> program_bytes();

}  // namespace distdoctor::fleet
