// Nodes of a World whose NVIDIA driver tells of its GPUs.
#pragma once

#include "support/check_cases.h"
#include "support/gpu_nodes.h"
#include "support/nvml_answers.h"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

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

// The rows of a check that lives by what the driver tells of its GPUs, and those that each such
// check has: it judges nothing where the driver told nothing.
inline void run_nvml_cases(std::string_view name, std::vector<CheckCase> cases) {
  cases.push_back({"a driver that told nothing is a gap, and so is one that told an error",
                   [](World& w) {
                     add_nvml(w, 2);
                     w.node(2).nvml = Unknown{.kind = Why::timed_out};
                     fail_nvml(w, 15, "GPU is lost");
                   },
                   {},
                   {"node1 nvml", "node2 nvml"}});
  cases.push_back({"near miss: no driver",
                   [](World& w) {
                     for (auto& node : w.cluster.nodes) node.gpu = GpuFacts{};
                   },
                   {},
                   {},
                   "no node has the NVIDIA driver loaded"});
  run_cases(name, cases);
}

}  // namespace distdoctor::testing
