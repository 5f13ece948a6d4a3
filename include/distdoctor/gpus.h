// Whether a node has GPUs: asked by checks of several areas, and by whoever picks what to run.
#pragma once

#include <distdoctor/facts.h>

#include <algorithm>
#include <cstdint>

namespace distdoctor {

// As its driver tells them, or as device files. Unknown facts are none.
inline bool has_gpus(const NodeFacts& node) {
  return (node.gpu.known() && !node.gpu->gpus.empty()) ||
         (node.devices.known() && !node.devices->gpus.empty());
}

// By its vendor and class (PCI Code and ID Assignment: 03 display, 12 processing accelerator).
inline bool is_gpu(const PciDevice& device) {
  constexpr std::uint16_t kNvidiaId = 0x10de;
  constexpr std::uint16_t kAmdId = 0x1002;
  const auto base = device.device_class >> 16U;
  return (device.vendor == kNvidiaId || device.vendor == kAmdId) && (base == 0x03 || base == 0x12);
}

// That it has none is known: no driver drives any, and none waits for a driver.
inline bool lacks_gpus(const NodeFacts& node) {
  return !has_gpus(node) && node.gpu.known() && node.gpu->nvidia_driver.empty() &&
         node.pci.known() && std::ranges::none_of(node.pci->devices, is_gpu);
}

}  // namespace distdoctor
