// The table of the runs of a bisect.
#pragma once

#include <distdoctor/facts/experiment.h>

#include "render/style.h"

#include <ostream>
#include <string>
#include <vector>

namespace distdoctor::render {

// " 2  P2P off (NCCL_P2P_DISABLE=1)   8 ranks   ok   12.3 GB/s"; without a line end.
std::string run_line(const Experiment& run);
void runs(const std::vector<Experiment>& experiments, const Style& style, std::ostream& out);

}  // namespace distdoctor::render
