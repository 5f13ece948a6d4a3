// The bonds that carry the job's data on a node. Look-ups that the checks of bonds share.
#pragma once

#include <distdoctor/bonds.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::checks::bonds {

inline bool is_bond(const Link& link) {
  return link.kind == LinkKind::bond || link.kind == LinkKind::team;
}

// The bond itself, or a VLAN on it by its usual name ("bond0.100").
inline bool over(const std::string& interface, const Link& bond) {
  return interface == bond.name || interface.starts_with(bond.name + ".");
}

// By a library that opens TCP connections.
inline bool carries_tcp(const Case& c, const NodeFacts& node, const Link& bond) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  return prediction != nullptr &&
         std::ranges::any_of(announced(c.cluster.job, *prediction), [&](const Announced& row) {
           return over(row.choice.interface, bond);
         });
}

// One RDMA device stands for a bond's ports (mlx5_bond_0).
inline bool carries_rdma(const Case& c, const NodeFacts& node, const Link& bond) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  if (prediction == nullptr || !prediction->hcas.known() || bond.rdma_device.empty()) return false;
  return c.cluster.job.nccl != Use::no &&
         std::ranges::find(prediction->hcas->used, bond.rdma_device, &HcaChoice::device) !=
             prediction->hcas->used.end();
}

struct BondInUse {
  const NodeFacts* node;
  const Link* bond;
  const Bond* told;  // null: it does not tell of itself
};

inline BondInUse bond_of(const NodeFacts& node, const Link& link) {
  return {&node, &link, link.bond ? &*link.bond : nullptr};
}

inline std::vector<BondInUse> bonds_in_use(const Case& c, Judge& judge) {
  std::vector<BondInUse> all;
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* links = judge.see(node, "net.links", node.links);
    if (links == nullptr) continue;
    for (const Link& link : *links) {
      const bool used =
          is_bond(link) && (carries_tcp(c, node, link) || carries_rdma(c, node, link));
      if (used) all.push_back(bond_of(node, link));
    }
  }
  if (all.empty()) judge.skip("no bond carries the job's data");
  return all;
}

// The bonds of this name on the other nodes.
inline std::vector<BondInUse> twins_of(const Case& c, const BondInUse& row) {
  std::vector<BondInUse> twins;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (&node == row.node || !node.links.known()) continue;
    const Link* other = find_link(*node.links, row.bond->name);
    if (other != nullptr && is_bond(*other)) twins.push_back(bond_of(node, *other));
  }
  return twins;
}

inline std::string see_bond(const Link& bond) {
  return "cat /proc/net/bonding/" + shell_quote(bond.name);
}

}  // namespace distdoctor::checks::bonds
