// Software on the nodes of a World.
#pragma once

#include "support/check_cases.h"

#include <cstddef>

namespace distdoctor::testing {

template <class Change>
void on(World& w, std::size_t node, Change change) {
  World::change(w.node(node).software, change);
}
template <class Change>
void on_all(World& w, Change change) {
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) on(w, i, change);
}
// NCCL is loaded by a rank of each node.
inline void running(World& w) {
  on_all(w, [](Software& software) { software.nccl[0].origin = "mapped by pid 7"; });
}
inline void no_nccl(Software& software) {
  software.nccl.clear();
}
inline void seen_by_ssh(World& w) {
  for (NodeFacts& node : w.cluster.nodes) node.context = Context::ssh;
}

}  // namespace distdoctor::testing
