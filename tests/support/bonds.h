// Worlds in which eth1, NCCL's interface, is a bond.
#pragma once

#include "support/builders.h"

#include <cstddef>
#include <string>
#include <vector>

namespace distdoctor::testing {

// On every node, of p7 and p8 at 100 Gb/s, both up.
inline void give_bonds(World& world, const std::string& mode) {
  for (NodeFacts& node : world.cluster.nodes) {
    World::change(node.links, [&](std::vector<Link>& links) {
      Bond bond{.mode = mode, .active = mode == "active-backup" ? "p7" : ""};
      for (const int index : {7, 8}) {
        const std::string name = "p" + std::to_string(index);
        bond.members.push_back({.name = name, .up = true, .speed_mbps = 100'000});
        links.push_back({.name = name,
                         .index = index,
                         .kind = LinkKind::ethernet,
                         .mtu = 9000,
                         .speed_mbps = 100'000,
                         .up = true,
                         .running = true,
                         .carrier = true,
                         .operstate = "up",
                         .master = "eth1"});
      }
      for (Link& link : links) {
        if (link.name != "eth1") continue;
        link.kind = LinkKind::bond;
        link.speed_mbps = 200'000;
        link.bond = bond;
      }
    });
  }
}
template <class Change>
void change_bond(World& world, std::size_t node, Change change) {
  world.change_link(node, "eth1", [&](Link& link) {
    if (link.bond) change(*link.bond);
  });
}
template <class Change>
void change_bonds(World& world, Change change) {
  for (std::size_t i = 0; i < world.cluster.nodes.size(); ++i) change_bond(world, i, change);
}

}  // namespace distdoctor::testing
