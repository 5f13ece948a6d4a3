// This machine, written down: an agent process of ours collects once, with every answer of the
// machine's doors noted (capture.h).
#pragma once

#include "base/deadline.h"
#include "base/error.h"

#include <chrono>
#include <string>

namespace distdoctor::fleet {

// The text of a captured machine. Errors: the process could not be started, or said nothing in
// time.
Result<std::string> record_here(Deadline deadline);

// The process that it starts, `distdoctor agent --record MS`: writes the text to `out_fd`. A
// collector that hangs is not waited for: what it has not asked by then is not in the text.
[[noreturn]] void run_recorder(int out_fd, std::chrono::milliseconds within);

}  // namespace distdoctor::fleet
