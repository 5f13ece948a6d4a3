// GPUs in their PCIe slots. Look-ups that the checks of this folder share; no judgement.
#pragma once

#include "devices.h"

#include <algorithm>

namespace distdoctor::checks::gpu {

// By the driver of its maker; of AMD the accelerators, which have no graphics.
inline bool is_driven(const PciDevice& device) {
  return (is_nvidia_gpu(device) && device.driver == "nvidia") ||
         (is_amd_accelerator(device) && device.driver == "amdgpu");
}

// The port at the other end of its link; null where the bus does not show it.
inline const PciDevice* port_above(const Pci& pci, const PciDevice& gpu) {
  return gpu.above.empty() ? nullptr : find_device(pci, gpu.above.back());
}

// Whether a device of that model in the cluster is `better`: then it is not the board's doing.
template <class Better>
bool others_of_its_model(const ClusterFacts& cluster, const PciDevice& gpu, Better better) {
  return std::ranges::any_of(cluster.nodes, [&](const NodeFacts& node) {
    return node.pci.known() && std::ranges::any_of(node.pci->devices, [&](const PciDevice& other) {
             return other.vendor == gpu.vendor && other.device == gpu.device && better(node, other);
           });
  });
}

inline Fix seat_again(const NodeFacts& node) {
  return by_hand(node, fmt::format("power {} off, seat the GPU or its riser again, and clean the "
                                   "contacts; if it stays so, look at the slot's settings in the "
                                   "BIOS (bifurcation, link speed)",
                                   node.host));
}

}  // namespace distdoctor::checks::gpu
