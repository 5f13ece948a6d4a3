// Worlds whose nodes have RDMA devices.
#pragma once

#include "support/builders.h"

#include <cstddef>
#include <string>
#include <vector>

namespace distdoctor::testing {

// "mlx5_0", "mlx5_1" at 400 Gb/s, usable, with NCCL's choice of them.
void give_infiniband(World& world);
// The same with 100 Gb/s RoCE; node i has 192.168.N.1i on mlx5_N, whose netdev is rdmaN.
void give_roce(World& world);
// NCCL's choice, worked out anew from what the world now holds.
void predict_hcas(World& world);
// A setting on every node, and what NCCL makes of it.
void set_and_predict(World& world, const std::string& name, const std::string& value);

template <class Change>
void change_rdma(World& world, std::size_t node, Change change) {
  World::change(world.node(node).rdma, change);
  predict_hcas(world);
}
template <class Change>
void change_hca(World& world, std::size_t node, const std::string& name, Change change) {
  change_rdma(world, node, [&](Rdma& rdma) {
    for (RdmaDevice& device : rdma.devices) {
      if (device.name == name) change(device, device.ports.at(0));
    }
  });
}

}  // namespace distdoctor::testing
