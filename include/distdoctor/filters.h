// What the nodes' own packet filters do to the connections of a job: asked of their rules, and
// said.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/filter_outlook.h>
#include <distdoctor/finding.h>
#include <distdoctor/packet_filter.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor {

// A connection as one node's filter sees it.
struct Passage {
  const NodeFacts* node;
  Way way = Way::in;
  Address own;
  Address peer;
  std::string interface = {};  // empty: the link that has the node's own address
  bool data = false;           // of a connection that is open: what comes after the handshake
};

namespace filters_detail {

inline bool same(const Address& one, const Address& other) {
  return one.v6 == other.v6 && one.bytes == other.bytes;
}

inline Packet packet_of(const Passage& passage, std::uint16_t port) {
  const bool in = passage.way == Way::in;
  Packet packet{.way = passage.way,
                .source = in ? passage.peer : passage.own,
                .destination = in ? passage.own : passage.peer,
                .port = port,
                .interface = passage.interface,
                .data = passage.data};
  const NodeFacts& node = *passage.node;
  const auto at = node.links.known() ? find_address(*node.links, passage.own) : std::nullopt;
  if (same(passage.own, passage.peer)) {
    packet.interface = "lo";
  } else if (packet.interface.empty() && at) {
    packet.interface = at->link->name;
  }
  const Link* link = node.links.known() ? find_link(*node.links, packet.interface) : nullptr;
  packet.bridged = link != nullptr && link->kind == LinkKind::bridge;
  return packet;
}

// The same connection's answer, which passes the node the other way.
inline Packet answer_to(Packet packet) {
  packet.way = packet.way == Way::in ? Way::out : Way::in;
  std::swap(packet.source, packet.destination);
  packet.answer = true;
  return packet;
}

// It passes if its answers do, too.
inline FilterResult judge(const Firewall& firewall, const Passage& passage, std::uint16_t port) {
  const Packet packet = packet_of(passage, port);
  FilterResult result = judge_packet(firewall, packet);
  if (result.says != FilterSays::passes) return result;
  FilterResult back = judge_packet(firewall, answer_to(packet));
  if (back.says == FilterSays::passes) return result;
  if (back.says == FilterSays::unknown) back.unsure = "its answers: " + back.unsure;
  for (FilterStop& stop : back.stops) stop.answer = true;
  for (FilterStop& stop : back.may_stop) stop.answer = true;
  return back;
}

}  // namespace filters_detail

// None: the node's rules are not known.
inline std::optional<FilterResult> outlook(const Passage& passage, std::uint16_t port) {
  if (!passage.node->firewall.known()) return std::nullopt;
  return filters_detail::judge(*passage.node->firewall, passage, port);
}

struct Outlook {
  PortRange ports;
  FilterResult result;
};
// For a whole range, in pieces that are treated alike.
inline std::vector<Outlook> outlooks(const Passage& passage, PortRange range) {
  constexpr std::size_t kMostPieces = 64;
  std::vector<Outlook> all;
  if (!passage.node->firewall.known()) return all;
  const Firewall& firewall = *passage.node->firewall;
  const auto pieces = port_pieces(firewall, range, kMostPieces);
  for (const PortRange& piece : pieces) {
    FilterResult result = filters_detail::judge(firewall, passage, piece.first);
    if (pieces.size() == kMostPieces && piece == pieces.back()) {
      result = {.says = FilterSays::unknown, .unsure = "too many rules about ports"};
    }
    if (!all.empty() && all.back().result == result) {
      all.back().ports.last = piece.last;
    } else {
      all.push_back({piece, std::move(result)});
    }
  }
  return all;
}

namespace filters_detail {
inline std::vector<FilterStop> each_once(const Passage& passage,
                                         PortRange ports,
                                         std::vector<FilterStop> FilterResult::* which) {
  std::vector<FilterStop> stops;
  for (const Outlook& piece : outlooks(passage, ports)) {
    for (const FilterStop& stop : piece.result.*which) {
      if (std::ranges::find(stops, stop) == stops.end()) stops.push_back(stop);
    }
  }
  return stops;
}
}  // namespace filters_detail

// All that ends such connections to some of these ports, each rule once.
inline std::vector<FilterStop> stops_of(const Passage& passage, PortRange ports) {
  return filters_detail::each_once(passage, ports, &FilterResult::stops);
}
// All that may, by conditions that nobody can follow from here.
inline std::vector<FilterStop> suspects_of(const Passage& passage, PortRange ports) {
  return filters_detail::each_once(passage, ports, &FilterResult::may_stop);
}

// --- words ---

// The program that owns the chain: "ip6tables-legacy".
inline std::string tool_of(const FilterStop& stop) {
  if (stop.tool == FilterTool::nft) return "nft";
  const std::string program = stop.family == "ip6" ? "ip6tables" : "iptables";
  return stop.tool == FilterTool::iptables_legacy ? program + "-legacy" : program;
}

// "inet filter input" of nft, "filter INPUT" of iptables.
inline std::string chain_of(const FilterStop& stop) {
  const std::string name = stop.table + " " + stop.chain;
  return stop.tool == FilterTool::nft ? stop.family + " " + name : name;
}

// "rule \"tcp dport 29500 drop\" in chain inet filter input of nft", "the policy of chain ...".
inline std::string text_of(const FilterStop& stop) {
  const std::string where = "chain " + chain_of(stop) + " of " + tool_of(stop);
  if (stop.number == 0) return "the policy of " + where;
  return "rule \"" + stop.text + "\" in " + where;
}

// What a person would type to see the rule with its number and counter.
inline std::string command_to_see(const FilterStop& stop) {
  if (stop.tool == FilterTool::nft) {
    return "nft -a list chain " + stop.family + " " + shell_quote(stop.table) + " " +
           shell_quote(stop.chain);
  }
  const std::string table = stop.table == "filter" ? "" : " -t " + shell_quote(stop.table);
  return tool_of(stop) + table + " -vnL " + shell_quote(stop.chain) + " --line-numbers";
}

// `whom`: who should be let through.
inline Evidence evidence_of(const std::string& node,
                            const FilterStop& stop,
                            const std::string& whom) {
  const std::string number = stop.number == 0 ? ", policy"
                             : stop.tool == FilterTool::nft
                                 ? ", handle " + std::to_string(stop.number)
                                 : ", rule " + std::to_string(stop.number);
  const std::string counted =
      stop.packets ? " (" + std::to_string(*stop.packets) + " packets when it was read)" : "";
  return {.node = node,
          .fact = tool_of(stop) + " chain " + chain_of(stop) + number,
          .observed = stop.text + counted,
          .expected = "a rule before it that accepts " + whom,
          .command = command_to_see(stop)};
}

}  // namespace distdoctor
