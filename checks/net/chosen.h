// What the addresses that NCCL and Gloo choose are worth to the other nodes. Look-ups that the
// checks of the choices share; no judgement.
#pragma once

#include <distdoctor/hcas.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/said.h>
#include <distdoctor/views.h>

#include "use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::checks {

inline bool same_address(const Address& a, const Address& b) {  // the zone is each node's own
  return a.v6 == b.v6 && a.bytes == b.bytes;
}

inline std::string choice_text(const Choice& choice) {
  return fmt::format("{} of {}", choice.address.text(), choice.interface);
}

// --- settings ---

// What was proved to be right on all nodes, of this library's variable alone.
inline std::vector<Fix> recommended(const Case& c, const std::string& name) {
  std::vector<Fix> fixes;
  const auto& reasons = c.cluster.predicted.recommended.reasons;
  const auto reason = reasons.find(name);
  for (const auto& [node, env] : c.cluster.predicted.recommended.env) {
    const auto value = env.find(name);
    if (value == env.end()) continue;
    fixes.push_back({.node = node,
                     .kind = Fix::Kind::env,
                     .env = {{name, value->second}},
                     .text = reason == reasons.end() ? "checked against every node's addresses"
                                                     : reason->second});
  }
  return fixes;
}

// In words where nothing is proved.
inline std::vector<Fix> set_variable(const Case& c,
                                     const std::string& name,
                                     const std::string& words) {
  auto fixes = recommended(c, name);
  if (fixes.empty()) fixes.push_back({.node = "*", .kind = Fix::Kind::manual, .text = words});
  return fixes;
}

// Whether NCCL's data goes by RDMA on every node, so that of sockets only the bootstrap counts.
inline bool rdma_carries_data(const Case& c) {
  return std::ranges::all_of(c.cluster.nodes, [&](const NodeFacts& node) {
    const Prediction* prediction = find_prediction(c.cluster, node.host);
    return prediction != nullptr && distdoctor::rdma_carries_data(node, *prediction);
  });
}

// --- addresses ---

inline bool holds(const NodeFacts& node, const Address& address) {
  return node.links.known() && std::ranges::any_of(*node.links, [&](const Link& link) {
           return std::ranges::any_of(link.addresses, [&](const LinkAddress& row) {
             return same_address(row.address, address);
           });
         });
}

inline std::optional<AddressOnLink> where_is(const NodeFacts& node, const Address& address) {
  return node.links.known() ? find_address(*node.links, address) : std::nullopt;
}

// An address of the node's own, other than this one, that lies in the same subnet. Whether its
// link runs is another question: net/link_down.
inline bool beside(const NodeFacts& node, const LinkAddress& row) {
  return node.links.known() && std::ranges::any_of(*node.links, [&](const Link& link) {
           return std::ranges::any_of(link.addresses, [&](const LinkAddress& own) {
             return own.prefix == row.prefix && !same_address(own.address, row.address) &&
                    row.address.shares_prefix(own.address, row.prefix);
           });
         });
}

// A bridge that nothing is attached to (docker0 without containers) never has a carrier: nobody
// unplugged it.
inline bool bare_bridge(const NodeFacts& node, const Link& link) {
  return link.kind == LinkKind::bridge && std::ranges::none_of(*node.links, [&](const Link& port) {
           return port.master == link.name;
         });
}

inline bool usable(const Link& link, const LinkAddress& row) {
  return link.running && !row.address.loopback() && !row.tentative && !row.dad_failed &&
         !(row.address.v6 && row.address.link_local());
}

// Whether the node could open a connection to that family at all.
inline bool speaks(const NodeFacts& node, bool v6) {
  if (!node.links.known()) return true;
  return std::ranges::any_of(*node.links, [&](const Link& link) {
    return std::ranges::any_of(link.addresses, [&](const LinkAddress& row) {
      return row.address.v6 == v6 && usable(link, row);
    });
  });
}

// --- dials ---

inline std::vector<const Dial*> dials_between(const ClusterFacts& cluster,
                                              std::string_view from,
                                              std::string_view to,
                                              const Address& address) {
  std::vector<const Dial*> dials;
  for (const PairFacts& pair : cluster.pairs) {
    if (pair.from != from || pair.to != to) continue;
    for (const Dial& dial : pair.dials) {
      if (same_address(dial.address, address)) dials.push_back(&dial);
    }
  }
  return dials;
}

// The packets reach the node: what stops them there is a filter, not the choice of the address.
inline bool gets_there(const Dial* dial) {
  return dial->outcome == Outcome::ok || (dial->syn_arrived.known() && *dial->syn_arrived);
}

// --- worthless addresses ---

// Why an address that a node announces is of no use to another node, by the kind of address it is.
// What fails in a subnet that both are in is no fault of the choice.
struct Worthless {
  const NodeFacts* witness;
  const Dial* dial;  // null: told by the addresses alone
  std::string why;
};

inline std::string kind_of(const Link& link, const LinkAddress& row) {
  if (row.address.link_local()) return "a link-local address";
  switch (link.kind) {
    case LinkKind::bridge:
      return "a bridge inside the node";
    case LinkKind::tun:
    case LinkKind::wireguard:
      return "a tunnel";
    default:
      return "another subnet";
  }
}

// Two nodes that both announce an address reach themselves by it. In a subnet where others have
// addresses of their own it is a mistake of one node: net/duplicate_ip.
inline std::optional<Worthless> taken_twice(const ClusterFacts& cluster,
                                            const NodeFacts& node,
                                            const AddressOnLink& at) {
  const NodeFacts* twin = nullptr;
  for (const NodeFacts& other : cluster.nodes) {
    if (other.host == node.host) continue;
    if (beside(other, *at.address)) return std::nullopt;
    if (twin == nullptr && holds(other, at.address->address)) twin = &other;
  }
  if (twin == nullptr) return std::nullopt;
  return Worthless{twin, nullptr, "which " + twin->host + " has too, so that it reaches itself"};
}

inline std::optional<Worthless> dialled_in_vain(const ClusterFacts& cluster,
                                                const NodeFacts& node,
                                                const AddressOnLink& at) {
  for (const NodeFacts& other : cluster.nodes) {
    const Address& address = at.address->address;  // a link-local one needs no address over there
    const bool one_subnet = !address.link_local() && beside(other, *at.address);
    if (other.host == node.host || one_subnet) continue;
    if (!address.link_local() && !speaks(other, address.v6)) continue;  // net/address_family
    const auto dials = dials_between(cluster, other.host, node.host, at.address->address);
    if (dials.empty() || std::ranges::any_of(dials, gets_there)) continue;
    return Worthless{&other, dials.front(),
                     fmt::format("{}, which {} does not reach ({})", kind_of(*at.link, *at.address),
                                 other.host, slug(dials.front()->outcome))};
  }
  return std::nullopt;
}

// `alternative`: a choice is known that is better. Without one a failing dial to another subnet is
// a matter of routes and filters.
inline std::optional<Worthless> worthless(const ClusterFacts& cluster,
                                          const NodeFacts& node,
                                          const Choice& choice,
                                          bool alternative) {
  const auto at = where_is(node, choice.address);
  if (!at) return std::nullopt;
  if (!at->link->running && !bare_bridge(node, *at->link)) return std::nullopt;  // net/link_down
  if (auto twice = taken_twice(cluster, node, *at)) return twice;
  const bool inner = kind_of(*at->link, *at->address) != "another subnet";
  return alternative || inner ? dialled_in_vain(cluster, node, *at) : std::nullopt;
}

inline std::string dial_command(const Choice& choice, const Worthless& row) {
  if (row.dial == nullptr) return "ip -br addr show dev " + shell_quote(choice.interface);
  return fmt::format("nc -vz -w 3 {} {}", shell_quote(choice.address.text()), row.dial->port);
}

}  // namespace distdoctor::checks
