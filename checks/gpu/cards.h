// RDMA cards that would carry a job's data. Look-ups that the checks of this folder share.
#pragma once

#include <distdoctor/facts.h>

#include <algorithm>
#include <string>
#include <vector>

namespace distdoctor::checks::gpu {

inline bool has_active_port(const RdmaDevice& device) {
  return std::ranges::any_of(device.ports, [](const RdmaPort& port) {
    return port.state.find("ACTIVE") != std::string::npos;
  });
}

// Mellanox cards that would carry data. Others have ways of their own to a GPU's memory (EFA), or
// none (software RDMA).
inline std::vector<const RdmaDevice*> cards_of(const NodeFacts& node) {
  std::vector<const RdmaDevice*> cards;
  for (const RdmaDevice& device : node.rdma->devices) {
    if (device.driver.starts_with("mlx5") && has_active_port(device)) cards.push_back(&device);
  }
  return cards;
}

}  // namespace distdoctor::checks::gpu
