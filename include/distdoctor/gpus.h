// Whether a node has GPUs: asked by checks of several areas, and by whoever picks what to run.
#pragma once

#include <distdoctor/facts.h>

namespace distdoctor {

// As its driver tells them, or as device files. Unknown facts are none.
inline bool has_gpus(const NodeFacts& node) {
  return (node.gpu.known() && !node.gpu->gpus.empty()) ||
         (node.devices.known() && !node.devices->gpus.empty());
}

}  // namespace distdoctor
