// The predict stage: what the libraries would choose on every node, and what would be right.
#pragma once

#include <distdoctor/facts.h>

namespace distdoctor::rules {

// Uses cluster.job and cluster.nodes; cluster.pairs only for `recommended` (addresses that were
// tried and do not answer are not recommended).
Predicted predict(const ClusterFacts& cluster);

}  // namespace distdoctor::rules
