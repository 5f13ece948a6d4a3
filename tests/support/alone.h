// A healthy world of which one node only is looked at.
#pragma once

#include "support/builders.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace distdoctor::testing {

// The others are strangers; what this node dialled stays.
inline void look_at_only(World& w, std::size_t index) {
  NodeFacts node = w.node(index);
  Prediction prediction = w.prediction(index);
  std::erase_if(w.cluster.pairs, [&](const PairFacts& pair) { return pair.from != node.host; });
  for (PairFacts& pair : w.cluster.pairs) pair.to.clear();
  if (w.cluster.predicted.master && w.cluster.predicted.master->node != node.host) {
    w.cluster.predicted.master->node.clear();
  }
  w.cluster.nodes = {std::move(node)};
  w.cluster.predicted.nodes = {std::move(prediction)};
}

}  // namespace distdoctor::testing
