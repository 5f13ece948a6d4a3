// Worlds whose RoCE ports tell what they do with priorities.
#pragma once

#include "support/hcas.h"

#include <algorithm>
#include <string>
#include <vector>

namespace distdoctor::testing {

// As mlx5 is set up for lossless RoCE: trust by DSCP, its default table, priority 3 kept from loss
// and under ECN.
inline LinkQos lossless_qos() {
  LinkQos qos{.trust = "dscp", .pause = 1 << 3, .ecn_tells = 1 << 3, .ecn_slows = 1 << 3};
  for (int dscp = 0; dscp < 64; ++dscp) {
    qos.by_dscp.push_back({.dscp = dscp, .priority = dscp / 8});
  }
  return qos;
}

// give_roce(), each port lossless, and the job in that class.
inline void give_lossless_roce(World& world) {
  give_roce(world);
  for (std::size_t i = 0; i < world.cluster.nodes.size(); ++i) {
    World::change(world.node(i).links, [&](std::vector<Link>& links) {
      for (int number = 0; number < 2; ++number) {
        const std::string digit = std::to_string(number);
        Link link = make_link("rdma" + digit, 20 + number, 4200,
                              "192.168." + digit + "." + std::to_string(10 + i));
        link.rdma_device = "mlx5_" + digit;
        link.qos = lossless_qos();
        links.push_back(std::move(link));
      }
    });
  }
  set_and_predict(world, "NCCL_IB_TC", "106");
}

// Of both ports of a node.
template <class Change>
void change_qos(World& world, std::size_t node, Change change) {
  for (const char* name : {"rdma0", "rdma1"}) {
    world.change_link(node, name, [&](Link& link) { World::change(link.qos, change); });
  }
}
template <class Change>
void change_all_qos(World& world, Change change) {
  for (std::size_t i = 0; i < world.cluster.nodes.size(); ++i) change_qos(world, i, change);
}

}  // namespace distdoctor::testing
