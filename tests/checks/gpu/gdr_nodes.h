// Nodes of a World with GPUs and an RDMA card.
#pragma once

#include "support/gpu_nodes.h"

#include <string>

namespace distdoctor::testing {

// On all nodes: two GPUs, the first with a card beside it below one switch.
inline void with_card(World& w, const std::string& driver = "mlx5_core") {
  add_gpus(w, 2);
  for (NodeFacts& node : w.cluster.nodes) {
    node.devices = Devices{.gpus = {"/dev/nvidia0", "/dev/nvidia1"}, .rdma = {"mlx5_0"}};
    RdmaDevice device{.name = "mlx5_0", .driver = driver, .pci = "0000:11:00.0"};
    device.ports.push_back({.state = "ACTIVE", .physical = "LinkUp"});
    node.rdma = Rdma{.devices = {device}};
    World::change(node.pci, [](Pci& pci) {
      pci.devices.push_back({.address = "0000:11:00.0",
                             .vendor = 0x15b3,
                             .device_class = 0x020700,
                             .driver = "mlx5_core",
                             .numa = 0,
                             .above = {"0000:00:00.0", "0000:01:00.0"}});
      device_at(pci, "0000:10:00.0").above = {"0000:00:00.0", "0000:01:01.0"};
      for (const char* port : {"0000:01:00.0", "0000:01:01.0"}) {
        pci.devices.push_back(fake_bridge(port));
      }
    });
  }
}

}  // namespace distdoctor::testing
