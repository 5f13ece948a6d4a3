// Which way a node's kernel would send a packet, worked out from its rules and routes (fib_rules.c,
// fib_trie.c): for answers, whose source address is given, so that nobody could be asked for them.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor {

// The dialler's own end: as its socket said, else as the kernel would choose it.
inline const std::optional<Address>& source_of(const Dial& dial) {
  return dial.source ? dial.source : dial.route.source;
}

namespace routing_detail {

constexpr int kMain = 254;
constexpr int kDefault = 253;

inline bool covers(const std::optional<Address>& prefix, int length, const Address& address) {
  return !prefix || prefix->shares_prefix(address, length);
}

// What a plain kernel has where no rule was listed.
inline std::vector<PolicyRule> rules_for(const std::vector<PolicyRule>& listed, bool v6) {
  std::vector<PolicyRule> rules;
  std::ranges::copy_if(listed, std::back_inserter(rules),
                       [&](const PolicyRule& rule) { return rule.v6 == v6; });
  if (rules.empty()) {
    rules.push_back({.priority = 32766, .v6 = v6, .table = kMain});
    rules.push_back({.priority = 32767, .v6 = v6, .table = kDefault});
  }
  std::ranges::stable_sort(rules, {}, &PolicyRule::priority);
  return rules;
}

inline const Route* best_in(const std::vector<Route>& routes, int table, const Address& to) {
  const Route* best = nullptr;
  for (const Route& route : routes) {
    if (route.table != table || !route.destination.shares_prefix(to, route.prefix)) continue;
    const bool better = best == nullptr || route.prefix > best->prefix ||
                        (route.prefix == best->prefix && route.metric < best->metric);
    if (better) best = &route;
  }
  return best;
}

inline bool matches(const PolicyRule& rule, const Address& to, const Address& from) {
  if (!rule.in_interface.empty() && rule.in_interface != "lo") return false;
  if (!rule.out_interface.empty()) return false;  // for sockets that are bound to one
  return covers(rule.from, rule.from_prefix, from) && covers(rule.to, rule.to_prefix, to);
}

}  // namespace routing_detail

struct WayOut {
  const Route* route = nullptr;      // null: there is none, or a rule forbids it
  const PolicyRule* rule = nullptr;  // the rule that forbids it, or whose table has the route
};

// Not known: facts are missing, or rules with marks and kinds that cannot be followed from here.
// A rule is named only where it is one of the node's own (not the kernel's three).
inline std::optional<WayOut> way_out(const NodeFacts& node,
                                     const Address& to,
                                     const Address& from) {
  if (!node.routes.known() || !node.rules.known()) return std::nullopt;
  const auto listed = [&](const PolicyRule& rule) -> const PolicyRule* {
    const auto found = std::ranges::find(*node.rules, rule);
    return found == node.rules->end() ? nullptr : &*found;
  };
  for (const PolicyRule& rule : routing_detail::rules_for(*node.rules, to.v6)) {
    if (rule.mark || rule.action == RuleAction::other) return std::nullopt;
    if (!routing_detail::matches(rule, to, from)) continue;
    if (rule.action != RuleAction::lookup) return WayOut{nullptr, listed(rule)};
    const Route* route = routing_detail::best_in(*node.routes, rule.table, to);
    if (route != nullptr) return WayOut{route, listed(rule)};
  }
  return WayOut{};
}

// The node's own rules before its main table that nobody can follow from here: they look at a mark,
// a protocol, a port, a user. Rule 1000 without a selector that we know is the kernel's, for VRFs.
inline std::vector<const PolicyRule*> unfollowed_rules(const NodeFacts& node, bool v6) {
  constexpr int kOfVrfs = 1000;
  std::vector<const PolicyRule*> found;
  if (!node.rules.known()) return found;
  int main_at = 32766;
  for (const PolicyRule& rule : *node.rules) {
    const bool main = rule.action == RuleAction::lookup && rule.table == routing_detail::kMain;
    if (rule.v6 == v6 && main && !rule.mark) main_at = std::min(main_at, rule.priority);
  }
  for (const PolicyRule& rule : *node.rules) {
    const bool hidden = rule.mark || rule.action == RuleAction::other;
    const bool of_vrfs = rule.priority == kOfVrfs && !rule.mark && !rule.from && !rule.to;
    if (hidden && rule.v6 == v6 && rule.priority < main_at && !of_vrfs) found.push_back(&rule);
  }
  return found;
}

inline bool leads_out(const Route& route) {
  return route.kind == RouteKind::unicast || route.kind == RouteKind::local;
}

// A route by a router to an address in the network of a link of the node's own, before the route of
// that link.
struct Detour {
  const Route* route;
  std::string near;  // the link that is in that network
};
inline std::optional<Detour> detour_of(const NodeFacts& node,
                                       const Address& to,
                                       const Address& from) {
  const auto way = way_out(node, to, from);
  const bool by_router = way && way->route != nullptr && way->route->gateway;
  if (!by_router || !node.links.known()) return std::nullopt;
  for (const Link& link : *node.links) {
    for (const LinkAddress& own : link.addresses) {
      const bool beside = link.running && own.prefix > 0 && own.prefix < own.address.bits() &&
                          own.prefix < way->route->prefix && own.address != to &&
                          own.address.shares_prefix(to, own.prefix);
      if (beside) return Detour{way->route, link.name};
    }
  }
  return std::nullopt;
}

// "10.20.0.10/32 via 10.10.0.1 dev eth0", as ip-route(8) takes it.
inline std::string route_text(const Route& route) {
  std::string text = route.destination.text() + "/" + std::to_string(route.prefix);
  if (route.gateway) text += " via " + route.gateway->text();
  return text + " dev " + route.interface;
}

inline std::string text_of(const NodeFacts& node, const Detour& detour) {
  return "route " + route_text(*detour.route) + " of " + node.host + ", whose " + detour.near +
         " is in that network";
}

// RFC 3704, ip-sysctl.rst: the larger of "all" and the link's own value counts; 1 is strict. None:
// one of the two is not known, and the other does not settle it.
inline std::optional<bool> reverse_path_is_strict(const NodeFacts& node,
                                                  const std::string& interface) {
  if (!node.kernel.known()) return std::nullopt;
  const auto value = [&](const std::string& name) -> std::optional<int> {
    const auto conf = node.kernel->conf.find(name);
    return conf == node.kernel->conf.end() ? std::nullopt : conf->second.rp_filter;
  };
  constexpr int kLoose = 2;
  const auto all = value("all");
  const auto own = value(interface);
  if (all == kLoose || own == kLoose) return false;
  if (!all || !own) return std::nullopt;
  return std::max(*all, *own) == 1;
}

inline bool strict_reverse_path(const NodeFacts& node, const std::string& interface) {
  return reverse_path_is_strict(node, interface).value_or(false);
}

// Why a node's own routing keeps a connection from coming about. `unsure`: some of it could not be
// followed, so that it may be the reason all the same; `missing` says what.
struct RoutingTrouble {
  enum class Kind : std::uint8_t { none, unsure, no_way_back, strict_at_target, strict_at_dialler };
  Kind kind = Kind::none;
  const NodeFacts* node = nullptr;  // whose routing it is
  std::string arrives_by = {};      // strict: the interface that the packet comes in by
  std::string leaves_by = {};       // strict: the one that an answer would leave by
  std::string missing = {};         // unsure: "the rules of node0 (marks or selectors)"
};

namespace routing_detail {

// The dialler's link that the target's answer comes in by: the one that shares a subnet with the
// link that the answer leaves by.
inline const Link* answer_comes_by(const NodeFacts& dialler, const Link& leaves) {
  for (const Link& link : *dialler.links) {
    for (const LinkAddress& own : link.addresses) {
      for (const LinkAddress& other : leaves.addresses) {
        if (own.prefix < own.address.bits() &&
            own.address.shares_prefix(other.address, own.prefix)) {
          return &link;
        }
      }
    }
  }
  return nullptr;
}

inline RoutingTrouble unsure(const NodeFacts& node, const char* what) {
  return {.kind = RoutingTrouble::Kind::unsure,
          .node = &node,
          .missing = std::string(what) + " of " + node.host};
}

// Why way_out does not know.
inline RoutingTrouble unsure_way(const NodeFacts& node) {
  if (!node.routes.known()) return unsure(node, "the routes");
  return unsure(node, node.rules.known() ? "policy rules (marks or other selectors)" : "the rules");
}

inline RoutingTrouble trouble_at_dialler(const NodeFacts& dialler,
                                         const NodeFacts& target,
                                         const Dial& dial,
                                         const std::string& leaves_by) {
  if (!dialler.links.known()) return unsure(dialler, "the links");
  if (dial.route.interface.empty()) return {};
  const Link* leaves = find_link(*target.links, leaves_by);
  const Link* comes = leaves == nullptr ? nullptr : answer_comes_by(dialler, *leaves);
  if (comes == nullptr || comes->name == dial.route.interface) return {};
  const auto strict = reverse_path_is_strict(dialler, comes->name);
  if (!strict) return unsure(dialler, "rp_filter");
  if (!*strict) return {};
  return {.kind = RoutingTrouble::Kind::strict_at_dialler,
          .node = &dialler,
          .arrives_by = comes->name,
          .leaves_by = dial.route.interface};
}

}  // namespace routing_detail

// The link by which a packet reached the IP layer of the target. The watch saw it on the lowest
// one: the bridge or bond above counts. Empty: not known.
inline std::string arrival_link(const NodeFacts& target, const Dial& dial) {
  const Link* link = find_link(*target.links, dial.arrived_by);
  while (link != nullptr && !link->master.empty()) link = find_link(*target.links, link->master);
  return link == nullptr || link->addresses.empty() ? "" : link->name;
}

// The links with an address in the subnet of `wanted`: ARP for it may be answered by any of them.
inline std::vector<std::string> links_in_subnet(const NodeFacts& node, const LinkAddress& wanted) {
  std::vector<std::string> names;
  if (!node.links.known() || wanted.prefix >= wanted.address.bits()) return names;
  for (const Link& link : *node.links) {
    const bool has =
        link.running && std::ranges::any_of(link.addresses, [&](const LinkAddress& row) {
          return row.prefix == wanted.prefix &&
                 row.address.shares_prefix(wanted.address, row.prefix);
        });
    if (has) names.push_back(link.name);
  }
  return names;
}

namespace routing_detail {

// Where the packet may have come in: where it was seen, else any link that answers for the address.
inline std::vector<std::string> may_arrive_by(const NodeFacts& target,
                                              const AddressOnLink& at,
                                              const Dial& dial) {
  if (std::string seen = arrival_link(target, dial); !seen.empty()) return {std::move(seen)};
  auto names = links_in_subnet(target, *at.address);
  if (names.empty()) names.push_back(at.link->name);
  return names;
}

}  // namespace routing_detail

namespace routing_detail {

// The target's rp_filter, then the dialler's; `leaves_by`: the link that the answer leaves by.
inline RoutingTrouble reverse_path_trouble(const NodeFacts& dialler,
                                           const NodeFacts& target,
                                           const Dial& dial,
                                           const AddressOnLink& at,
                                           const std::string& leaves_by) {
  RoutingTrouble doubt;
  for (const std::string& arrives_by : may_arrive_by(target, at, dial)) {
    if (arrives_by == leaves_by) continue;
    const auto strict = reverse_path_is_strict(target, arrives_by);
    if (!strict) doubt = unsure(target, "rp_filter");
    if (!strict.value_or(false)) continue;
    return {.kind = RoutingTrouble::Kind::strict_at_target,
            .node = &target,
            .arrives_by = arrives_by,
            .leaves_by = leaves_by};
  }
  const RoutingTrouble there = trouble_at_dialler(dialler, target, dial, leaves_by);
  return there.kind == RoutingTrouble::Kind::none ? doubt : there;
}

}  // namespace routing_detail

// Looks at a dial that got no answer. IPv6 has no rp_filter.
inline RoutingTrouble routing_trouble(const NodeFacts& dialler,
                                      const NodeFacts& target,
                                      const Dial& dial) {
  if (dial.address.loopback()) return {};
  const auto& source = source_of(dial);
  if (!source) return routing_detail::unsure(dialler, "the source address");
  if (!target.links.known()) return routing_detail::unsure(target, "the links");
  const auto at = find_address(*target.links, dial.address);
  if (!at) return {};  // somebody else's routing
  const auto back = way_out(target, *source, dial.address);
  if (!back) return routing_detail::unsure_way(target);
  if (back->route == nullptr || !leads_out(*back->route)) {
    return {
        .kind = RoutingTrouble::Kind::no_way_back, .node = &target, .arrives_by = at->link->name};
  }
  const std::string& leaves_by = back->route->interface;
  const bool to_itself = back->route->kind == RouteKind::local;  // both have the address
  if (dial.address.v6 || leaves_by.empty() || to_itself) return {};
  return routing_detail::reverse_path_trouble(dialler, target, dial, *at, leaves_by);
}

}  // namespace distdoctor
