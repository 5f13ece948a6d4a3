// Whether one condition of a filter's rule holds for a packet: yes, no, or not known from here.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/facts/firewall.h>
#include <distdoctor/filter_outlook.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace distdoctor {

// One of the first two packets of a TCP connection, or of its data, or a datagram.
struct Packet {
  Way way = Way::in;
  Address source;
  Address destination;
  std::uint16_t port = 0;      // of the end that listens; the kernel picked the other one
  std::string interface = {};  // that it comes in by, or leaves by; empty: not known
  bool answer = false;         // the second packet: SYN and ACK, back from that port
  bool data = false;           // after these two: PSH and ACK
  bool bridged = false;        // that interface is a bridge, so that its own chains see it, too
  bool udp = false;
};

enum class Holds : std::uint8_t { no, maybe, yes };

// FilterField has no name for these. They stand behind `other`, as its first value.
inline constexpr std::string_view kSourceType = "source type";  // "local", "broadcast", ...
inline constexpr std::string_view kDestinationType = "destination type";
inline constexpr std::string_view kPacketType = "packet type";  // "host", "broadcast", "multicast"
inline constexpr std::string_view kTcpFlags = "tcp flags";  // "syn,ack/syn": of these just those
inline constexpr std::string_view kMark = "mark";           // "0x8000/0x8000": value, mask
// The target of a rule without a verdict that gives the packet another mark.
inline constexpr std::string_view kSetsMark = "mark";

namespace filter_detail {

using Values = std::vector<std::string>;

template <class T>
std::optional<T> number(std::string_view text, int base = 10) {
  T value{};
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, value, base);
  if (error != std::errc{} || stopped != end || text.empty()) return std::nullopt;
  return value;
}

// Before and after the first `mark`; the second is empty where there is none.
inline std::pair<std::string_view, std::string_view> halves(std::string_view text, char mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

inline Holds sure(bool holds) {
  return holds ? Holds::yes : Holds::no;
}

// Whether any of them holds, by a question that may have no answer for a value.
template <class Ask>
Holds any_of(const Values& values, Ask ask) {
  Holds any = Holds::no;
  for (const std::string& value : values) {
    const std::optional<bool> one = ask(std::string_view(value));
    if (!one) return Holds::maybe;
    if (*one) any = Holds::yes;
  }
  return any;
}

// --- addresses, ports, names ---

// "10.0.0.0/8", "10.0.0.1", "10.0.0.1-10.0.0.9".
inline std::optional<bool> has_address(std::string_view text, const Address& address) {
  if (const auto [first, last] = halves(text, '-'); !last.empty()) {
    const auto low = Address::parse(first);
    const auto high = Address::parse(last);
    if (!low || !high || low->v6 != high->v6) return std::nullopt;
    return low->v6 == address.v6 && low->bytes <= address.bytes && address.bytes <= high->bytes;
  }
  const auto [base, length] = halves(text, '/');
  const auto prefix = Address::parse(base);
  if (!prefix) return std::nullopt;
  const auto bits = text.find('/') == std::string_view::npos ? prefix->bits() : number<int>(length);
  if (!bits || *bits < 0 || *bits > prefix->bits()) return std::nullopt;
  return prefix->shares_prefix(address, *bits);
}

inline std::optional<PortRange> port_range(std::string_view text) {
  const auto [low, high] = halves(text, '-');
  const auto first = number<std::uint16_t>(low);
  const auto last = high.empty() ? first : number<std::uint16_t>(high);
  if (!first || !last || *first > *last) return std::nullopt;
  return PortRange{*first, *last};
}

inline Holds any_port(const Values& values, std::uint16_t port) {
  return any_of(values, [&](std::string_view value) -> std::optional<bool> {
    const auto range = port_range(value);
    if (!range) return std::nullopt;
    return range->first <= port && port <= range->last;
  });
}

// Of the port that the kernel picks, which is never a privileged one.
inline Holds any_picked_port(const Values& values) {
  constexpr std::uint16_t kFirst = 1024;
  Holds any = Holds::no;
  for (const std::string& value : values) {
    const auto range = port_range(value);
    if (range && range->first <= kFirst && range->last == 65535) return Holds::yes;
    if (!range || range->last >= kFirst) any = Holds::maybe;
  }
  return any;
}

inline Holds any_interface(const Values& values, const std::string& interface) {
  if (interface.empty()) return values.empty() ? Holds::no : Holds::maybe;
  return any_of(values, [&](std::string_view pattern) {
    if (!pattern.ends_with('*')) return std::optional(pattern == interface);
    pattern.remove_suffix(1);
    return std::optional(interface.starts_with(pattern));
  });
}

inline Holds any_word(const Values& values, std::initializer_list<std::string_view> words) {
  return sure(std::ranges::any_of(values, [&](const std::string& value) {
    return std::ranges::find(words, value) != words.end();
  }));
}

// --- marks, flags ---

inline std::optional<std::uint32_t> hex(std::string_view text) {
  if (text.starts_with("0x")) return number<std::uint32_t>(text.substr(2), 16);
  return number<std::uint32_t>(text);
}

// Of "0x8000/0x8000": whether a mark of 0 is meant.
inline std::optional<bool> zero_is_meant(std::string_view text) {
  const auto [value, mask] = halves(text, '/');
  const auto wanted = hex(value);
  if (!wanted || !hex(mask)) return std::nullopt;
  return *wanted == 0;
}

inline bool lists(std::string_view flags, std::string_view flag) {
  while (!flags.empty()) {
    const auto [first, rest] = halves(flags, ',');
    if (first == flag) return true;
    flags = rest;
  }
  return false;
}

// Of "syn,ack/syn": whether a packet fits that has SYN set, and ACK where it is an answer.
inline std::optional<bool> flags_fit(std::string_view text, bool answer) {
  const auto [mask, wanted] = halves(text, '/');
  if (mask.empty() || wanted.empty()) return std::nullopt;
  for (std::string_view rest = wanted; !rest.empty();) {
    const auto [flag, more] = halves(rest, ',');
    if (flag != "syn" && flag != "none" && !(answer && flag == "ack")) return false;
    rest = more;
  }
  const bool acks = !answer || lists(mask, "ack") == lists(wanted, "ack");
  return acks && lists(mask, "syn") == lists(wanted, "syn");
}

// The same of a packet with data, which has PSH and ACK.
inline std::optional<bool> flags_fit_data(std::string_view text) {
  const auto [mask, wanted] = halves(text, '/');
  if (mask.empty() || wanted.empty()) return std::nullopt;
  for (const std::string_view flag : {"fin", "syn", "rst", "psh", "ack", "urg"}) {
    const bool set = flag == "psh" || flag == "ack";
    if (lists(mask, flag) && set != lists(wanted, flag)) return false;
  }
  return true;
}

inline Holds any_flags(const Values& values, const Packet& packet) {
  return any_of(values, [&](std::string_view flags) {
    return packet.data ? flags_fit_data(flags) : flags_fit(flags, packet.answer);
  });
}

inline std::string_view state_of(const Packet& packet) {
  return packet.answer || packet.data ? "established" : "new";
}

// --- the condition ---

inline Holds of_named(const Values& all, const Packet& packet, bool mark_known) {
  if (all.empty()) return Holds::maybe;
  const Values values(all.begin() + 1, all.end());
  const bool itself = packet.source.bytes == packet.destination.bytes;
  if (all.front() == kSourceType) {
    return any_word(values, {packet.way == Way::out || itself ? "local" : "unicast"});
  }
  if (all.front() == kDestinationType) {
    return any_word(values, {packet.way == Way::in || itself ? "local" : "unicast"});
  }
  if (all.front() == kPacketType) return any_word(values, {"host", "unicast"});
  if (all.front() == kTcpFlags) {
    return packet.udp ? Holds::no : any_flags(values, packet);
  }
  if (all.front() == kMark && mark_known) return any_of(values, zero_is_meant);
  return Holds::maybe;
}

inline Holds unnegated(const FilterCondition& condition, const Packet& packet, bool mark_known) {
  const Values& values = condition.values;
  const auto has = [](const Address& address) {
    return [&address](std::string_view text) { return has_address(text, address); };
  };
  switch (condition.field) {
    case FilterField::source:
      return any_of(values, has(packet.source));
    case FilterField::destination:
      return any_of(values, has(packet.destination));
    case FilterField::protocol:
      return packet.udp ? any_word(values, {"udp", "17"}) : any_word(values, {"tcp", "6"});
    case FilterField::source_port:
      return packet.answer ? any_port(values, packet.port) : any_picked_port(values);
    case FilterField::destination_port:
      return packet.answer ? any_picked_port(values) : any_port(values, packet.port);
    case FilterField::in_interface:
      return packet.way == Way::in ? any_interface(values, packet.interface) : Holds::no;
    case FilterField::out_interface:
      return packet.way == Way::out ? any_interface(values, packet.interface) : Holds::no;
    case FilterField::state:
      return any_word(values, {state_of(packet)});
    case FilterField::family:
      return any_word(values, {packet.destination.v6 ? "ip6" : "ip"});
    case FilterField::other:
      return of_named(values, packet, mark_known);
    case FilterField::limit:
      break;
  }
  return Holds::maybe;
}

}  // namespace filter_detail

// `mark_known`: no rule has changed the packet's mark, which is 0 at first.
inline Holds holds(const FilterCondition& condition, const Packet& packet, bool mark_known) {
  const Holds any = filter_detail::unnegated(condition, packet, mark_known);
  if (!condition.negated || any == Holds::maybe) return any;
  return filter_detail::sure(any == Holds::no);
}

}  // namespace distdoctor
