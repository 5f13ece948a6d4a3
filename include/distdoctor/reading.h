// What one dial that failed tells, and about whom; look-ups that the checks of paths share.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/finding.h>
#include <distdoctor/routing.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace distdoctor {

// refused: a reset that says no more than that nobody listens.
enum class Kind : std::uint8_t { dropped, rejected, unreachable, refused, wrong_service };
// Where the packet met its end, as far as is known.
enum class Spot : std::uint8_t { unknown, sender, between, target };

struct Reading {
  const NodeFacts* from;
  const NodeFacts* target;  // null: no peer has the address
  const Dial* dial;
  Kind kind;
  Spot spot;
  Certainty certainty;
  std::string excluded = {};  // for `unreachable`: what takes the blame off a filter
};

// --- the other reasons for silence ---

inline const Listener* listener_at(const NodeFacts& node, std::uint16_t port) {
  if (!node.sockets.known()) return nullptr;
  const auto found = std::ranges::find(node.sockets->listeners, port, &Listener::port);
  return found == node.sockets->listeners.end() ? nullptr : &*found;
}

// The count is a snapshot, and the kernel evicts a few when it is full (early_drop): 99 % is full.
inline bool conntrack_full(const NodeFacts& node) {
  return node.kernel.known() && node.kernel->conntrack_count && node.kernel->conntrack_max &&
         *node.kernel->conntrack_max > 0 &&
         *node.kernel->conntrack_count >= *node.kernel->conntrack_max / 100 * 99;
}

inline std::string text_of(const RoutingTrouble& trouble) {
  switch (trouble.kind) {
    case RoutingTrouble::Kind::none:
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

inline std::string other_reason(const NodeFacts& from, const NodeFacts* target, const Dial& dial) {
  if (conntrack_full(from)) return "the connection tracking table of " + from.host + " is full";
  if (target == nullptr) return {};
  const Listener* listener = listener_at(*target, dial.port);
  if (listener != nullptr && listener->queued > 0 && listener->queued >= listener->backlog) {
    return "the accept queue of the listener on " + target->host + " is full";
  }
  if (conntrack_full(*target)) {
    return "the connection tracking table of " + target->host + " is full";
  }
  return text_of(routing_trouble(from, *target, dial));
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

namespace reading_detail {

inline void read_silence(Reading& reading) {
  reading.excluded = other_reason(*reading.from, reading.target, *reading.dial);
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

}  // namespace reading_detail

// For a dial whose outcome is not `ok`.
inline Reading reading_of(const NodeFacts& from, const NodeFacts* target, const Dial& dial) {
  Reading reading{.from = &from,
                  .target = target,
                  .dial = &dial,
                  .kind = Kind::unreachable,
                  .spot = Spot::unknown,
                  .certainty = Certainty::proved};
  const auto sender = icmp_sender(dial);
  switch (dial.outcome) {
    case Outcome::timed_out:
      reading_detail::read_silence(reading);
      break;
    case Outcome::refused:
      reading.kind = Kind::refused;
      reading_detail::read_refusal(reading);
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

// "; the first packet arrived there", for a line of evidence.
inline std::string trace_text(const Dial& dial) {
  if (dial.syn_arrived.known() && *dial.syn_arrived) return "; the first packet arrived there";
  if (dial.syn_left.known() && !*dial.syn_left) return "; the first packet did not leave";
  if (dial.syn_arrived.known()) return "; the first packet did not arrive there";
  return "";
}

}  // namespace distdoctor
