// One rank from its job to its last line, the same for each library.
#pragma once

#include "workers/rank/backend.h"

namespace distdoctor::workers {

// Talks on stdin and stdout. Returns the exit status: 0 when the all-reduce was right, 1 when it
// was not or could not be run (the last line says why), 2 when stdin held no job.
int run_rank(Backend& backend);

}  // namespace distdoctor::workers
