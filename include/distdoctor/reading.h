// What one dial that failed tells, and about whom; look-ups that the checks of paths share.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/filters.h>
#include <distdoctor/finding.h>
#include <distdoctor/judge.h>
#include <distdoctor/routing.h>
#include <distdoctor/silence.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  std::string unsure = {};    // for `dropped`: what might, and could not be looked at
  std::string detour = {};    // for `dropped`: a route that may lead it, or its answer, nowhere
  // It was open, and then nothing came through, or it was reset. Our own listener resets whom it
  // gets no word from, too.
  bool after_connect = false;
  bool itself() const { return from == target; }  // by the loopback link
  // What the rules of the two say of it; none where they are not known.
  std::optional<FilterResult> at_sender = {};
  std::optional<FilterResult> at_target = {};
};

// --- the reading ---

// Who sent the ICMP error that ended the attempt: "ICMP 3/13 from 10.0.0.1".
inline std::optional<Address> icmp_sender(const Dial& dial) {
  const auto from = dial.error.find(" from ");
  if (!dial.error.starts_with("ICMP") || from == std::string::npos) return std::nullopt;
  return Address::parse(dial.error.substr(from + 6));
}

// What a dial's error says when the answer was seen coming in: a filter of the dialling node itself
// took it.
inline constexpr std::string_view kAnswerDropped = "the answer came, and was dropped here";

inline Spot spot_of(const Dial& dial) {
  if (dial.error == kAnswerDropped) return Spot::sender;
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
  OtherReason other = other_reason(*reading.from, reading.target, *reading.dial);
  reading.excluded = std::move(other.found);
  reading.unsure = std::move(other.unsure);
  reading.kind = reading.excluded.empty() ? Kind::dropped : Kind::unreachable;
  reading.spot = spot_of(*reading.dial);
  // That the first packet arrived is enough only where an answer would have been seen, too.
  const Dial& dial = *reading.dial;
  const bool seen_ending =
      dial.error == kAnswerDropped || (reading.spot == Spot::target && dial.syn_left.known());
  const bool proved = seen_ending && reading.unsure.empty();
  reading.certainty = proved ? Certainty::proved : Certainty::likely;
}

// A closed port answers with a reset, never with ICMP (RFC 1122, 4.2.2.13 and 3.2.2.1): that is a
// filter's. A reset is a filter's when somebody listened.
inline void read_refusal(Reading& reading) {
  const Dial& dial = *reading.dial;
  const auto sender = icmp_sender(dial);
  const bool listens =
      reading.target != nullptr && listener_at(*reading.target, dial.address, dial.port) != nullptr;
  if (!sender && !dial.ours && !listens) return;
  reading.kind = Kind::rejected;
  reading.spot = sender ? spot_of_icmp(dial, *sender) : spot_of(dial);
  reading.certainty = sender || dial.ours ? Certainty::proved : Certainty::likely;
}

}  // namespace reading_detail

// --- what the rules say ---

inline bool says(const std::optional<FilterResult>& rules, FilterSays what) {
  return rules && rules->says == what;
}

// What ends the connection where the reading says that it ends; null: no rule is known to.
inline const FilterResult* deciding_rules(const Reading& reading) {
  const auto& at = reading.spot == Spot::sender ? reading.at_sender : reading.at_target;
  const bool on_a_node = reading.spot == Spot::sender || reading.spot == Spot::target;
  if (!on_a_node || !at || at->says != FilterSays::stopped) return nullptr;
  return &*at;
}

// What may end it there, by conditions that nobody can follow; null: none is known.
inline const FilterResult* suspected_rules(const Reading& reading) {
  const auto& at = reading.spot == Spot::sender ? reading.at_sender : reading.at_target;
  const bool on_a_node = reading.spot == Spot::sender || reading.spot == Spot::target;
  return on_a_node && says(at, FilterSays::unknown) && !at->may_stop.empty() ? &*at : nullptr;
}

inline const std::vector<FilterStop>* named_rules(const Reading& reading) {
  if (const FilterResult* rules = deciding_rules(reading)) return &rules->stops;
  const FilterResult* rules = suspected_rules(reading);
  return rules == nullptr ? nullptr : &rules->may_stop;
}

// The target may send the connection elsewhere: by a rule that is no filter's, and which nobody
// follows from here.
inline bool may_be_redirected(const Reading& reading) {
  if (reading.spot != Spot::target || !says(reading.at_target, FilterSays::unknown)) return false;
  const std::string rule = reading.at_target ? reading.at_target->unsure : "";
  return std::ranges::any_of(
      std::array<std::string_view, 4>{"REDIRECT", "DNAT", "redirect", "dnat"},
      [&](std::string_view word) { return rule.find(word) != std::string::npos; });
}

// It ends on a node, though the nftables and iptables rules of both let it and its answers pass.
inline bool in_spite_of_rules(const Reading& reading) {
  return reading.detour.empty() && (reading.spot == Spot::sender || reading.spot == Spot::target) &&
         says(reading.at_sender, FilterSays::passes) && says(reading.at_target, FilterSays::passes);
}

namespace reading_detail {

// Whether this node's rules explain what was measured: a silence, or an answer in its name.
inline bool explains(const Reading& reading, const std::optional<FilterResult>& rules, Spot spot) {
  if (!rules || rules->says != FilterSays::stopped) return false;
  if (reading.spot != Spot::unknown && reading.spot != spot) return false;
  const FilterStop& first = rules->stops.front();
  const bool rejects = first.verdict == FilterVerdict::reject && !first.answer;
  return rejects || reading.after_connect || reading.kind == Kind::dropped ||
         reading.kind == Kind::rejected;
}

inline void decide(Reading& reading, Spot spot) {
  const auto& rules = spot == Spot::sender ? reading.at_sender : reading.at_target;
  const bool drops = rules && rules->stops.front().verdict == FilterVerdict::drop;
  if (reading.after_connect && drops) {
    reading.kind = Kind::dropped;
  } else if (reading.kind != Kind::dropped) {
    reading.kind = Kind::rejected;
  }
  reading.spot = spot;
  reading.certainty = Certainty::proved;
  reading.unsure.clear();
}

}  // namespace reading_detail

namespace reading_detail {

// The handshake passed: what a node's rules do to the data.
inline std::optional<FilterResult> outlook_of(const Reading& reading, Passage passage) {
  passage.data = reading.after_connect;
  return outlook(passage, reading.dial->port);
}

inline bool may_be_a_filters(const Reading& reading) {
  const bool answered = reading.kind == Kind::wrong_service && !reading.after_connect;
  return !answered && reading.excluded.empty();
}

// A route or rule of the node where it ends that may be why.
inline std::string way_to_nowhere(const Reading& reading) {
  const auto& source = source_of(*reading.dial);
  const bool leaving = reading.spot == Spot::sender;
  const NodeFacts* node = leaving ? reading.from : reading.target;
  if (node == nullptr || !source || reading.spot == Spot::between) return {};
  const Address& to = leaving ? reading.dial->address : *source;
  const auto detour = detour_of(*node, to, leaving ? *source : reading.dial->address);
  if (detour) return text_of(*node, *detour);
  if (!leaving || unfollowed_rules(*node, to.v6).empty()) return {};
  return "a policy rule of " + node->host + " that looks at marks, ports or users (`ip rule show`)";
}

}  // namespace reading_detail

// Asks the rules of both nodes about a dial that was read.
inline void ask_the_rules(Reading& reading) {
  using reading_detail::decide;
  using reading_detail::explains;
  const Dial& dial = *reading.dial;
  const auto& source = source_of(dial);
  if (!source || !reading_detail::may_be_a_filters(reading)) return;
  reading.at_sender = reading_detail::outlook_of(reading, {.node = reading.from,
                                                           .way = Way::out,
                                                           .own = *source,
                                                           .peer = dial.address,
                                                           .interface = dial.route.interface});
  if (reading.target != nullptr) {
    reading.at_target = reading_detail::outlook_of(reading, {.node = reading.target,
                                                             .own = dial.address,
                                                             .peer = *source,
                                                             .interface = dial.arrived_by});
  }
  if (explains(reading, reading.at_sender, Spot::sender)) return decide(reading, Spot::sender);
  if (explains(reading, reading.at_target, Spot::target)) return decide(reading, Spot::target);
  const bool filtered = reading.kind == Kind::dropped || reading.kind == Kind::rejected;
  const bool both_pass =
      says(reading.at_sender, FilterSays::passes) && says(reading.at_target, FilterSays::passes);
  // A plain reset of what listens by IPv6, with no rule that sends one: it does not serve IPv4.
  const bool got_there = !dial.syn_arrived.known() || *dial.syn_arrived;
  const bool plain =
      dial.outcome == Outcome::refused && !icmp_sender(dial) && !dial.ours && got_there;
  if (plain && both_pass && reading.target != nullptr &&
      v6_listener(*reading.target, dial.address, dial.port) != nullptr) {
    reading.kind = Kind::refused;
    return;
  }
  const bool unseen = reading.spot == Spot::unknown && !reading.after_connect;
  if (filtered && unseen && both_pass) reading.spot = Spot::between;
  if (filtered && reading.itself()) reading.spot = Spot::target;  // nothing lies between
  if (reading.kind == Kind::dropped) reading.detour = reading_detail::way_to_nowhere(reading);
  if (may_be_redirected(reading) || !reading.detour.empty()) {
    reading.certainty = Certainty::likely;
  }
}

// For a dial whose outcome is not `ok`; with what the rules of both nodes say of it.
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
      reading.after_connect = !sender;
      break;
    case Outcome::wrong_answer:
    case Outcome::no_answer:
      reading.kind = Kind::wrong_service;
      if (dial.outcome == Outcome::no_answer) {
        reading.certainty = Certainty::likely;
        reading.after_connect = true;
      }
      break;
    default:
      break;
  }
  ask_the_rules(reading);
  return reading;
}

// " (rule \"...\" in chain ...)", or that no rule is to blame; empty where they are not known.
inline std::string rule_text(const Reading& reading) {
  const FilterResult* rules = deciding_rules(reading);
  if (rules != nullptr) return " (" + text_of(rules->stops.front()) + ")";
  if (may_be_redirected(reading)) {
    const std::string rule = reading.at_target ? reading.at_target->unsure : "";
    return ", by " + rule + " perhaps, which sends them elsewhere";
  }
  if (const FilterResult* suspects = suspected_rules(reading)) {
    return ", perhaps by " + text_of(suspects->may_stop.front());
  }
  if (!reading.detour.empty()) return ", or " + reading.detour;
  if (!in_spite_of_rules(reading)) return "";
  return ", though its nftables and iptables rules let them pass (an eBPF program: tc, XDP, "
         "Cilium, Calico)";
}

// "; the first packet arrived there", for a line of evidence.
inline std::string trace_text(const Dial& dial) {
  if (dial.error == kAnswerDropped) return std::string("; ").append(kAnswerDropped);
  if (dial.syn_arrived.known() && *dial.syn_arrived) return "; the first packet arrived there";
  if (dial.syn_left.known() && !*dial.syn_left) return "; the first packet did not leave";
  if (dial.syn_arrived.known()) return "; the first packet did not arrive there";
  return "";
}

// A silence that is called a filter's, though something else could not be excluded, is a gap.
inline void note_doubt(const Reading& reading, Judge& judge) {
  if (reading.unsure.empty()) return;
  const NodeFacts& node = reading.target != nullptr ? *reading.target : *reading.from;
  const Observed<bool> excluded =
      Unknown{.kind = Why::unsupported, .text = reading.unsure + " may be the reason, too"};
  judge.see(node, "dial.reason", excluded);
}

// "; not excluded: the rules of node0", likewise.
inline std::string doubt_text(const Reading& reading) {
  return reading.unsure.empty() ? "" : "; not excluded: " + reading.unsure;
}

}  // namespace distdoctor
