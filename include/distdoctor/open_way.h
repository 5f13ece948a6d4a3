// How connections that a packet filter ends are let through: in the node's own filter, before the
// rule that decides where that is known, or in what lies between.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/firewall_fix.h>
#include <distdoctor/reading.h>
#include <distdoctor/views.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor {

using Readings = std::vector<Reading>;

inline void add_new(std::vector<Fix>& fixes, std::vector<Fix> more) {
  for (Fix& fix : more) {
    if (std::ranges::find(fixes, fix) == fixes.end()) fixes.push_back(std::move(fix));
  }
}

namespace open_way_detail {

struct RuleRow {
  std::string node;
  FilterStop stop;
  std::vector<std::string> whom = {};
};

inline RuleRow& row_of(std::vector<RuleRow>& rows,
                       const std::string& node,
                       const FilterStop& stop) {
  const auto told = std::ranges::find_if(
      rows, [&](const RuleRow& row) { return row.node == node && row.stop == stop; });
  return told != rows.end() ? *told : rows.emplace_back(RuleRow{.node = node, .stop = stop});
}

inline std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace open_way_detail

// The rules that decide, or may, of all these: a row each, with whom they stop.
inline void add_rules(const Readings& readings, std::vector<Evidence>& evidence) {
  std::vector<open_way_detail::RuleRow> rows;
  for (const Reading& reading : readings) {
    const auto* rules = named_rules(reading);
    if (rules == nullptr) continue;
    const bool in = reading.spot == Spot::target;
    const std::string& node = in ? reading.target->host : reading.from->host;
    const std::string whom = in ? reading.from->host : reading.dial->address.text();
    for (const FilterStop& stop : *rules) {
      auto& all = open_way_detail::row_of(rows, node, stop).whom;
      if (std::ranges::find(all, whom) == all.end()) all.push_back(whom);
    }
  }
  for (const auto& row : rows) {
    evidence.push_back(evidence_of(row.node, row.stop, open_way_detail::joined(row.whom)));
  }
}

namespace open_way_detail {

// What is to be done at one node for those whose deciding rules are known; the rest of `peers` are
// left for the command that asks the node itself.
inline std::vector<Fix> open(const NodeFacts& node, const Address& own, Opening opening) {
  std::vector<Closed> closed;
  const auto add = [&](const Address& peer) {
    Passage passage{.node = &node, .way = opening.way, .own = own, .peer = peer};
    auto stops = stops_of(passage, opening.ports);
    if (stops.empty()) {  // the handshake passes: what comes after it
      passage.data = true;
      stops = stops_of(passage, opening.ports);
    }
    passage.data = false;
    if (stops.empty()) stops = suspects_of(passage, opening.ports);
    for (const FilterStop& stop : stops) closed.push_back({peer, stop});
    return !stops.empty();
  };
  std::vector<Address> unread;
  for (const Address& peer : opening.peers) {
    if (!add(peer)) unread.push_back(peer);
  }
  if (closed.empty() || !node.firewall.known()) return open_port_fix(opening);
  // Ranks of one node meet over its own address.
  const bool told = std::ranges::find(opening.peers, own) != opening.peers.end();
  if (opening.way == Way::in && !told) add(own);
  auto fixes = open_before_fix(opening, *node.firewall, closed);
  opening.peers = std::move(unread);
  std::erase(opening.peers, own);
  std::ranges::move(open_port_fix(opening), std::back_inserter(fixes));
  return fixes;
}

inline std::string interface_of(const NodeFacts& node, const Address& address) {
  const auto at = node.links.known() ? find_address(*node.links, address) : std::nullopt;
  return at ? at->link->name : "";
}

}  // namespace open_way_detail

inline Fix look_for_other_filters(const std::string& node) {
  return {.node = node,
          .kind = Fix::Kind::manual,
          .text =
              "no nftables or iptables rule stops them: look for eBPF programs (`bpftool net`, "
              "`tc filter show dev LINK ingress`, `ip link` for xdp) and for whoever loads "
              "them (Cilium, Calico, a security agent)"};
}

inline Fix look_at_the_way(const std::string& node, const std::string& detour) {
  return {.node = node,
          .kind = Fix::Kind::manual,
          .text = "see whether this leads anywhere: " + detour +
                  "; `ip route get ADDRESS`, `ip rule show`"};
}

// A rule of address translation: no accept in a filter undoes it.
inline Fix look_at_the_translation(const Reading& reading) {
  const std::string rule = reading.at_target ? reading.at_target->unsure : "";
  return {
      .node = reading.target->host,
      .kind = Fix::Kind::manual,
      .text = "look at " + rule +
              ": it sends these connections elsewhere. Take it away (`iptables -t nat -S`, `nft "
              "-a list ruleset`), or let it spare this port"};
}

// At the target of all these, for the address that they dialled. `with_itself`: the target dials
// that address, too (rank 0 its own store), and a rule on the port alone stops it as well.
inline std::vector<Fix> let_in(const Readings& readings, PortRange ports, bool with_itself) {
  const Reading& first = readings.front();
  if (first.target == nullptr) return {};
  if (std::ranges::all_of(readings, in_spite_of_rules)) {
    return {look_for_other_filters(first.target->host)};
  }
  const auto astray = [](const Reading& row) {
    return !row.detour.empty() && deciding_rules(row) == nullptr;
  };
  if (std::ranges::all_of(readings, astray)) {
    return {look_at_the_way(first.target->host, first.detour)};
  }
  if (std::ranges::all_of(readings, may_be_redirected)) return {look_at_the_translation(first)};
  const auto passes = [](const Reading& row) { return says(row.at_target, FilterSays::passes); };
  if (std::ranges::all_of(readings, passes)) return {};  // it is not this node's filter
  const Address& own = first.dial->address;
  std::vector<Address> peers;
  if (with_itself) peers.push_back(own);
  for (const Reading& reading : readings) {
    const auto& source = source_of(*reading.dial);
    if (source && std::ranges::find(peers, *source) == peers.end()) peers.push_back(*source);
  }
  return open_way_detail::open(*first.target, own,
                               {.node = first.target->host,
                                .peers = peers,
                                .ports = ports,
                                .interface = open_way_detail::interface_of(*first.target, own),
                                .own = own});
}

// The dialling node drops what comes back to it, by a rule that was not read.
inline Fix let_answers_in(const std::string& node) {
  return {.node = node,
          .kind = Fix::Kind::manual,
          .text =
              "as root, let answers in before any rule that drops incoming packets: `ct state "
              "established,related accept` at the top of each such chain of nftables, or "
              "`iptables -I INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT`"};
}

inline std::vector<Fix> let_out(const Reading& reading, PortRange ports) {
  const bool unread = deciding_rules(reading) == nullptr;
  if (reading.dial->error == kAnswerDropped && unread && !reading.itself()) {
    return {let_answers_in(reading.from->host)};
  }
  if (in_spite_of_rules(reading)) return {look_for_other_filters(reading.from->host)};
  if (!reading.detour.empty() && unread) {
    return {look_at_the_way(reading.from->host, reading.detour)};
  }
  const auto& source = source_of(*reading.dial);
  return open_way_detail::open(*reading.from, source.value_or(Address{}),
                               {.node = reading.from->host,
                                .peers = {reading.dial->address},
                                .ports = ports,
                                .interface = reading.dial->route.interface,
                                .way = Way::out,
                                .own = reading.itself() ? source : std::nullopt});
}

// `what`: "TCP to 10.0.0.1:29500".
inline Fix ask_the_network(const std::string& node,
                           const std::string& what,
                           const std::string& senders) {
  return {.node = node,
          .kind = Fix::Kind::manual,
          .text = "allow " + what + " from " + senders +
                  " in what lies between: a security group, a NetworkPolicy, the ACL of a switch "
                  "or router"};
}

}  // namespace distdoctor
