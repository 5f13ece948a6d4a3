// Nodes of a World whose NVIDIA driver tells of its GPUs.
#pragma once

#include "support/gpu_nodes.h"
#include "support/nvml_answers.h"

#include <cstddef>

namespace distdoctor::testing {

// On all nodes, SXM GPUs with a fabric, or as `shape` says; its addresses are filled in.
inline void add_nvml(World& world,
                     int count,
                     NvmlShape shape = {.fabric = true, .nvlinks = 18, .nvlinks_active = 18}) {
  add_gpus(world, count, shape.name);
  for (int i = 0; i < count; ++i) shape.addresses.push_back(gpu_address(i));
  for (NodeFacts& node : world.cluster.nodes) node.nvml = fake_nvml(shape);
}

// GPU `index` of node1.
template <class Change>
void change_nvml_gpu(World& world, std::size_t index, Change change) {
  World::change(world.node(1).nvml, [&](Nvml& nvml) { change(nvml.gpus.at(index)); });
}

// node1's driver answers with an error of nvmlInit.
inline void fail_nvml(World& world, int code, const std::string& words) {
  world.node(1).nvml = Nvml{.error = words, .error_code = code};
}

}  // namespace distdoctor::testing
