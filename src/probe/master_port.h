// Whether we may listen on the job's own port for a moment (the rule of the design: MASTER_PORT is
// the job's); pure.
#pragma once

#include <distdoctor/facts.h>

#include <string>

namespace distdoctor::probe {

// Empty: nobody is seen who uses the port or is about to, and all nodes were seen. Else why not.
std::string why_not_bind(const ClusterFacts& cluster, const Master& master);

}  // namespace distdoctor::probe
