// Nodes of a World with GPUs. Each call changes all nodes, so that they agree.
#pragma once

#include "support/builders.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {

inline std::string gpu_address(int i) {
  return "0000:" + std::to_string(10 + 10 * i) + ":00.0";
}

inline Gpu fake_gpu(int i, const std::string& model) {
  return {.pci = gpu_address(i),
          .vendor = GpuVendor::nvidia,
          .model = model,
          .uuid = "GPU-" + std::to_string(i),
          .minor = i,
          .device_node = "/dev/nvidia" + std::to_string(i),
          .node_there = true,
          .node_usable = true};
}

inline PciDevice fake_gpu_device(int i) {
  return {.address = gpu_address(i),
          .vendor = 0x10de,
          .device = 0x20b5,
          .device_class = 0x030200,
          .driver = "nvidia",
          .numa = 0,
          .above = {"0000:00:0" + std::to_string(i) + ".0"},
          .width = 16,
          .max_width = 16};
}

inline PciDevice fake_bridge(const std::string& address) {
  return {.address = address,
          .vendor = 0x8086,
          .device = 0x347a,
          .device_class = 0x060400,
          .driver = "pcieport",
          .numa = 0,
          .width = 16,
          .max_width = 16,
          .acs_redirects = false};
}

// On all nodes, each GPU below a root port of its own: 0000:10:00.0 below 0000:00:00.0, ...
inline void add_gpus(World& world, int count, const std::string& model = "NVIDIA A100 80GB PCIe") {
  for (NodeFacts& node : world.cluster.nodes) {
    GpuFacts gpu{.nvidia_driver = "550.54.15",
                 .nvidia_open = true,
                 .nvidia_library = "550.54.15",
                 .peermem = true,
                 .control_node = true,
                 .uvm_node = true};
    Pci pci{.config_readable = true, .iommu = "identity"};
    for (int i = 0; i < count; ++i) {
      gpu.gpus.push_back(fake_gpu(i, model));
      pci.devices.push_back(fake_gpu_device(i));
      pci.devices.push_back(fake_bridge(pci.devices.back().above.back()));
    }
    node.gpu = gpu;
    node.pci = pci;
  }
}

inline PciDevice& device_at(Pci& pci, const std::string& address) {
  for (PciDevice& device : pci.devices) {
    if (device.address == address) return device;
  }
  throw std::logic_error("no such device");
}

// NCCL_P2P_DISABLE on all nodes, and what NCCL makes of it.
inline void set_p2p_disable(World& world, const std::string& value, const std::string& taken_as) {
  world.set("NCCL_P2P_DISABLE", value);
  for (Prediction& prediction : world.cluster.predicted.nodes) {
    prediction.variables = {{.name = "NCCL_P2P_DISABLE", .taken_as = taken_as}};
  }
}

inline void log_line(World& world, std::size_t node, double uptime_s, const std::string& text) {
  World::change(world.node(node).kernel_log,
                [&](KernelLog& log) { log.lines.push_back({.uptime_s = uptime_s, .text = text}); });
}

}  // namespace distdoctor::testing
