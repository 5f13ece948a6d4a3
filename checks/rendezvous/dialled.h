// What a dial to MASTER_ADDR:MASTER_PORT that failed tells, and about whom.
#pragma once

#include <distdoctor/firewall_fix.h>

#include "ranks.h"

namespace distdoctor::checks {

enum class Kind : std::uint8_t { dropped, rejected, unreachable, not_up, wrong_service };
// Where the packet met its end, as far as is known.
enum class Spot : std::uint8_t { unknown, sender, between, target };

struct Reading {
  const NodeFacts* from;
  const NodeFacts* target;  // null: no peer has the address
  const Dial* dial;
  Kind kind;
  Spot spot;
  Certainty certainty;
  std::string excluded = {};  // for `unreachable`: what took the blame off a filter
};

// --- the other reasons for silence ---

inline const Listener* listener_at(const NodeFacts& node, std::uint16_t port) {
  if (!node.sockets.known()) return nullptr;
  const auto found = std::ranges::find(node.sockets->listeners, port, &Listener::port);
  return found == node.sockets->listeners.end() ? nullptr : &*found;
}

inline bool conntrack_full(const NodeFacts& node) {
  return node.kernel.known() && node.kernel->conntrack_count && node.kernel->conntrack_max &&
         *node.kernel->conntrack_max > 0 &&
         *node.kernel->conntrack_count >= *node.kernel->conntrack_max;
}

// The interface by which the main table answers an address; empty: no route, or not seen.
inline std::string way_back(const NodeFacts& node, const Address& address) {
  if (!node.routes.known()) return {};
  const Route* best = nullptr;
  for (const Route& route : *node.routes) {
    const bool fits = route.table == 254 && route.kind == RouteKind::unicast &&
                      route.destination.shares_prefix(address, route.prefix);
    if (!fits) continue;
    const bool better = best == nullptr || route.prefix > best->prefix ||
                        (route.prefix == best->prefix && route.metric < best->metric);
    if (better) best = &route;
  }
  return best == nullptr ? "" : best->interface;
}

// Strict rp_filter (RFC 3704; ip-sysctl.rst: the larger of "all" and the link's own value counts)
// drops what comes in by another link than the answer would leave by.
inline bool reverse_path_drops(const NodeFacts& target, const Dial& dial) {
  if (!target.links.known() || !target.kernel.known() || !dial.source) return false;
  const auto at = find_address(*target.links, dial.address);
  if (!at) return false;
  const auto strictness = [&](const std::string& name) {
    const auto conf = target.kernel->conf.find(name);
    return conf == target.kernel->conf.end() ? 0 : conf->second.rp_filter;
  };
  const std::string back = way_back(target, *dial.source);
  return std::max(strictness("all"), strictness(at->link->name)) == 1 && !back.empty() &&
         back != at->link->name;
}

inline std::string other_reason(const Reading& reading) {
  if (conntrack_full(*reading.from)) {
    return "the connection tracking table of " + reading.from->host + " is full";
  }
  if (reading.target == nullptr) return {};
  const std::string& host = reading.target->host;
  const Listener* listener = listener_at(*reading.target, reading.dial->port);
  if (listener != nullptr && listener->queued > 0 && listener->queued >= listener->backlog) {
    return "the accept queue of the listener on " + host + " is full";
  }
  if (conntrack_full(*reading.target))
    return "the connection tracking table of " + host + " is full";
  if (reverse_path_drops(*reading.target, *reading.dial)) {
    return "strict rp_filter on " + host + " drops what comes in there";
  }
  return {};
}

// --- the reading ---

// Who sent the ICMP error that ended the attempt: "ICMP 3/13 from 10.0.0.1".
inline std::optional<Address> icmp_sender(const Dial& dial) {
  const auto from = dial.error.find(" from ");
  if (!dial.error.starts_with("ICMP") || from == std::string::npos) return std::nullopt;
  return Address::parse(dial.error.substr(from + 6));
}

inline Spot spot_of(const Dial& dial) {
  if (dial.syn_arrived.known() && *dial.syn_arrived) return Spot::target;
  if (dial.syn_left.known() && !*dial.syn_left) return Spot::sender;
  if (dial.syn_arrived.known()) return Spot::between;
  return Spot::unknown;
}

inline Spot spot_of_icmp(const Dial& dial, const Address& sender) {
  if (sender == dial.address) return Spot::target;
  return dial.source && sender == *dial.source ? Spot::sender : Spot::between;
}

inline void read_silence(Reading& reading) {
  reading.excluded = other_reason(reading);
  reading.kind = reading.excluded.empty() ? Kind::dropped : Kind::unreachable;
  reading.spot = spot_of(*reading.dial);
  const bool seen_arriving = reading.spot == Spot::target;
  reading.certainty = seen_arriving ? Certainty::proved : Certainty::likely;
}

// A closed port answers with a reset, never with ICMP (RFC 1122, 4.2.2.13 and 3.2.2.1): that is a
// filter's. A reset is a filter's when somebody listened.
inline void read_refusal(Reading& reading) {
  const Dial& dial = *reading.dial;
  const auto sender = icmp_sender(dial);
  const bool listens =
      reading.target != nullptr && listener_at(*reading.target, dial.port) != nullptr;
  if (!sender && !dial.ours && !listens) return;
  reading.kind = Kind::rejected;
  reading.spot = sender ? spot_of_icmp(dial, *sender) : spot_of(dial);
  reading.certainty = sender || dial.ours ? Certainty::proved : Certainty::likely;
}

inline Reading read(const NodeFacts& from, const NodeFacts* target, const Dial& dial) {
  Reading reading{.from = &from,
                  .target = target,
                  .dial = &dial,
                  .kind = Kind::unreachable,
                  .spot = Spot::unknown,
                  .certainty = Certainty::proved};
  const auto sender = icmp_sender(dial);
  switch (dial.outcome) {
    case Outcome::timed_out:
      read_silence(reading);
      break;
    case Outcome::refused:
      reading.kind = Kind::not_up;
      read_refusal(reading);
      break;
    case Outcome::prohibited:
      reading.kind = Kind::rejected;
      reading.spot = sender ? spot_of_icmp(dial, *sender) : Spot::unknown;
      break;
    case Outcome::host_unreachable:
    case Outcome::net_unreachable:
      // The machine itself says that it cannot be reached: a filter's way to reject.
      if (sender == dial.address) {
        reading.kind = Kind::rejected;
        reading.spot = Spot::target;
      }
      break;
    case Outcome::reset:
      reading.kind = Kind::rejected;
      reading.certainty = Certainty::likely;
      break;
    case Outcome::wrong_answer:
    case Outcome::no_answer:
      reading.kind = Kind::wrong_service;
      if (dial.outcome == Outcome::no_answer) reading.certainty = Certainty::likely;
      break;
    default:
      break;
  }
  return reading;
}

// The most telling failure comes first: where a name has several addresses, one may have no route.
inline int telling(const Dial& dial) {
  switch (dial.outcome) {
    case Outcome::local_error:
      return 0;
    case Outcome::net_unreachable:
      return 1;
    case Outcome::host_unreachable:
      return 2;
    default:
      return 3;
  }
}

// The node's dial to the master that speaks for it; null: one went well, or none was made.
struct Decisive {
  const Dial* dial = nullptr;
  std::string to = {};
  bool tried = false;
};
inline Decisive decisive_dial(const ClusterFacts& cluster, const NodeFacts& from) {
  Decisive decisive;
  for (const PairFacts& pair : cluster.pairs) {
    if (pair.from != from.host || pair.to == from.host) continue;
    for (const Dial& dial : pair.dials) {
      if (dial.purpose != Purpose::master) continue;
      if (dial.outcome == Outcome::ok) return {.tried = true};
      decisive.tried = true;
      if (decisive.dial != nullptr && telling(*decisive.dial) >= telling(dial)) continue;
      decisive.dial = &dial;
      decisive.to = pair.to;
    }
  }
  return decisive;
}

}  // namespace distdoctor::checks
