// The process that stands for the job on this node: `--pid auto`.
#pragma once

#include <optional>

namespace distdoctor::fleet {

// A worker of the job that most of this node's workers belong to, by their network namespace; none
// where no worker is seen. Looked for by a child, since looking starts threads, and whoever enters
// namespaces must have none.
std::optional<int> find_job_process();

}  // namespace distdoctor::fleet
