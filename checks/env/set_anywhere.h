// Whether a variable is set at all, on any node. A look-up that checks of this folder share.
#pragma once

#include <distdoctor/facts.h>

#include <algorithm>
#include <string>

namespace distdoctor::checks::env {

inline bool set_anywhere(const ClusterFacts& cluster, const std::string& name) {
  return std::ranges::any_of(cluster.predicted.nodes, [&](const Prediction& prediction) {
    return prediction.settings.contains(name);
  });
}

}  // namespace distdoctor::checks::env
