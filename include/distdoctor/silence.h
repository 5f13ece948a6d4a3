// What else than a filter may be why a dial gets no answer or a reset: listeners, full tables,
// routes. Look-ups that the reading of a dial goes by.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/routing.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace distdoctor {

namespace reading_detail {

constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

// ::ffff:10.0.0.1 as the IPv4 address that it stands for (RFC 4291, 2.5.5.2).
inline Address unmapped(const Address& address) {
  if (!address.v6 || !std::equal(kMapped.begin(), kMapped.end(), address.bytes.begin())) {
    return address;
  }
  Address v4;
  std::copy(address.bytes.begin() + 12, address.bytes.end(), v4.bytes.begin());
  return v4;
}

}  // namespace reading_detail

// Whether a connection to `dialled` may reach this listener. An IPv6 wildcard serves IPv4 too,
// unless IPV6_V6ONLY was set, which nothing shows.
inline bool serves(const Listener& listener, const Address& dialled) {
  const Address bound = reading_detail::unmapped(listener.address);
  const Address wanted = reading_detail::unmapped(dialled);
  if (bound.unspecified()) return bound.v6 || !wanted.v6;
  return bound.v6 == wanted.v6 && bound.bytes == wanted.bytes;
}

inline const Listener* listener_at(const NodeFacts& node,
                                   const Address& address,
                                   std::uint16_t port) {
  if (!node.sockets.known()) return nullptr;
  const auto& all = node.sockets->listeners;
  const auto found = std::ranges::find_if(all, [&](const Listener& listener) {
    return listener.port == port && serves(listener, address);
  });
  return found == all.end() ? nullptr : &*found;
}

// What may listen at the port for IPv6 alone: a wildcard of IPv6, and none of IPv4; else null. Most
// of them serve IPv4, too.
inline const Listener* v6_listener(const NodeFacts& node,
                                   const Address& address,
                                   std::uint16_t port) {
  const Listener* listener = listener_at(node, address, port);
  if (listener == nullptr || reading_detail::unmapped(address).v6) return nullptr;
  return reading_detail::unmapped(listener->address).v6 ? listener : nullptr;
}

// Something listens at the port, but for connections of its own node only; else null.
inline const Listener* loopback_listener(const NodeFacts& node, std::uint16_t port) {
  if (!node.sockets.known()) return nullptr;
  const auto& all = node.sockets->listeners;
  const auto found = std::ranges::find_if(all, [&](const Listener& listener) {
    return listener.port == port && reading_detail::unmapped(listener.address).loopback();
  });
  return found == all.end() ? nullptr : &*found;
}

// Of a table without room nothing is known (max 0).
inline bool table_full(std::int64_t count, std::int64_t most) {
  return most > 0 && count >= most - most / 100;
}

// The count is a snapshot, and the kernel evicts a few when it is full (early_drop): 99 % is full.
inline bool conntrack_full(const NodeFacts& node) {
  if (!node.kernel.known()) return false;
  const KernelNet& kernel = *node.kernel;
  return kernel.conntrack_count && kernel.conntrack_max &&
         table_full(*kernel.conntrack_count, *kernel.conntrack_max);
}

inline std::string text_of(const RoutingTrouble& trouble) {
  switch (trouble.kind) {
    case RoutingTrouble::Kind::none:
    case RoutingTrouble::Kind::unsure:
      return {};
    case RoutingTrouble::Kind::no_way_back:
      return trouble.node->host + " has no way to answer";
    case RoutingTrouble::Kind::strict_at_target:
    case RoutingTrouble::Kind::strict_at_dialler:
      break;
  }
  return "strict rp_filter on " + trouble.node->host + " drops what comes in by " +
         trouble.arrives_by + ", since it would answer by " + trouble.leaves_by;
}

// A node's connections to its own addresses go by this link.
inline bool loopback_down(const NodeFacts& node) {
  return node.links.known() && std::ranges::any_of(*node.links, [](const Link& link) {
           return link.kind == LinkKind::loopback && !link.up;
         });
}

// Why a dial got no answer, other than by a filter.
struct OtherReason {
  std::string found = {};   // empty: none was found
  std::string unsure = {};  // then: what could not be looked at; empty: all was
};

namespace reading_detail {

// What a node's own tables and queues say; `target`: the accept queue matters, too. Our own
// listener accepts at once.
inline OtherReason by_tables(const NodeFacts& node, const NodeFacts* target, const Dial& dial) {
  if (!node.kernel.known()) return {.unsure = "the connection tracking table of " + node.host};
  if (conntrack_full(node)) {
    return {.found = "the connection tracking table of " + node.host + " is full"};
  }
  if (target != &node) return {};
  if (!node.sockets.known()) {
    return dial.ours ? OtherReason{} : OtherReason{.unsure = "the sockets of " + node.host};
  }
  const Listener* listener = listener_at(node, dial.address, dial.port);
  if (listener == nullptr || listener->queued == 0 || listener->queued < listener->backlog) {
    return {};
  }
  return {.found = "the accept queue of the listener on " + node.host + " is full"};
}

}  // namespace reading_detail

inline OtherReason other_reason(const NodeFacts& from, const NodeFacts* target, const Dial& dial) {
  if (target == &from && loopback_down(from)) {
    return {.found = "the loopback link lo of " + from.host + " is down"};
  }
  std::vector<OtherReason> reasons = {reading_detail::by_tables(from, target, dial)};
  if (target != nullptr) {
    if (target != &from) reasons.push_back(reading_detail::by_tables(*target, target, dial));
    const RoutingTrouble trouble = routing_trouble(from, *target, dial);
    reasons.push_back({.found = text_of(trouble), .unsure = trouble.missing});
  }
  OtherReason all;
  for (const OtherReason& reason : reasons) {
    if (!reason.found.empty()) return reason;
    if (all.unsure.empty()) all.unsure = reason.unsure;
  }
  return all;
}

}  // namespace distdoctor
