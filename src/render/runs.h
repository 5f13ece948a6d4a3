// The table of the runs of a bisect, and of the wires below them.
#pragma once

#include <distdoctor/facts/experiment.h>
#include <distdoctor/facts/pairs.h>

#include "render/style.h"

#include <ostream>
#include <string>
#include <vector>

namespace distdoctor::render {

// " 2  P2P off (NCCL_P2P_DISABLE=1)   8 ranks   ok   12.3 GB/s"; without a line end.
std::string run_line(const Experiment& run);
void runs(const std::vector<Experiment>& experiments, const Style& style, std::ostream& out);
// What plain TCP carries, the slowest paths first; a few of them, unless the style is verbose.
void wires(const std::vector<PairFacts>& pairs, const Style& style, std::ostream& out);

}  // namespace distdoctor::render
