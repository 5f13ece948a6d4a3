// check --since: what an earlier look counted, beside what is counted now.
#pragma once

#include <distdoctor/facts.h>

namespace distdoctor::exam {

// Fills `earlier` of each node that was reached, from the node of the same name in `then`. Only
// what surely counts on is taken: the same boot, a later look, the same port, the same interface
// (index and hardware address: containers have an eth0 each). Else it is unknown, and why.
void add_earlier(const ClusterFacts& then, ClusterFacts& now);

}  // namespace distdoctor::exam
