// Connections that a node's own routing stops: on the way out, or on the way of the answer.
#pragma once

#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/routing.h>
#include <distdoctor/untested.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {

struct Stuck {
  const NodeFacts* node;  // whose routing it is
  Address to;             // where it has no way to
  std::string towards;    // the peer there; the address itself where no peer has it
  std::string said;       // the kernel's own words
  std::optional<WayOut> way = {};
  std::vector<Purpose> purposes = {};
  std::uint16_t port = 0;  // that was dialled
  bool answers = false;    // seen only from the other side, which got no answer
};

inline bool refused_at_once(const Dial& dial) {
  return dial.outcome != Outcome::ok && dial.error.starts_with("connect: ") &&
         dial.error.ends_with(", at once");
}

// EADDRNOTAVAIL, EINVAL for a zone and their kind are no matter of routes; these four are what
// `ip route` calls no route, unreachable, prohibit and blackhole.
inline bool refused_by_routing(const Dial& dial) {
  if (!refused_at_once(dial)) return false;
  return dial.outcome == Outcome::net_unreachable || dial.outcome == Outcome::host_unreachable ||
         dial.error.starts_with("connect: EACCES") ||
         (dial.error.starts_with("connect: EINVAL") && dial.address.zone.empty());
}

// --- gathering ---

inline void add_stuck(std::vector<Stuck>& all, Stuck stuck) {
  const auto known = std::ranges::find_if(
      all, [&](const Stuck& row) { return row.node == stuck.node && row.to == stuck.to; });
  if (known == all.end()) {
    all.push_back(std::move(stuck));
    return;
  }
  known->answers = known->answers && stuck.answers;
  for (const Purpose purpose : stuck.purposes) {
    if (std::ranges::find(known->purposes, purpose) == known->purposes.end()) {
      known->purposes.push_back(purpose);
    }
  }
}

inline void add_own(const NodeFacts& node,
                    const PairFacts& pair,
                    const Dial& dial,
                    std::vector<Stuck>& all) {
  if (!refused_by_routing(dial) || dial.address.loopback()) return;
  const Address source = dial.source.value_or(Address{.v6 = dial.address.v6});
  add_stuck(all, {.node = &node,
                  .to = dial.address,
                  .towards = pair.to.empty() ? dial.address.text() : pair.to,
                  .said = dial.route.error.empty() ? dial.error : dial.route.error,
                  .way = way_out(node, dial.address, source),
                  .purposes = {dial.purpose},
                  .port = dial.port});
}

inline void add_answers(const ClusterFacts& cluster,
                        const PairFacts& pair,
                        const Dial& dial,
                        std::vector<Stuck>& all) {
  const NodeFacts* from = find_node(cluster, pair.from);
  const NodeFacts* to = find_node(cluster, pair.to);
  if (dial.outcome != Outcome::timed_out || from == nullptr || to == nullptr) return;
  const RoutingTrouble trouble = routing_trouble(*from, *to, dial);
  const auto& back = source_of(dial);
  if (trouble.kind != RoutingTrouble::Kind::no_way_back || !back) return;
  add_stuck(all, {.node = to,
                  .to = *back,
                  .towards = pair.from,
                  .said = "an answer has no way out",
                  .way = way_out(*to, *back, dial.address),
                  .purposes = {dial.purpose},
                  .answers = true});
}

// Each node and address once, a node's own attempts before what others saw of it.
inline std::vector<Stuck> stuck_by_routing(const ClusterFacts& cluster) {
  std::vector<Stuck> all;
  for (const PairFacts& pair : cluster.pairs) {
    const NodeFacts* node = find_node(cluster, pair.from);
    if (node == nullptr) continue;
    for (const Dial& dial : pair.dials) add_own(*node, pair, dial, all);
  }
  for (const PairFacts& pair : cluster.pairs) {
    for (const Dial& dial : pair.dials) add_answers(cluster, pair, dial, all);
  }
  return all;
}

// --- sorting ---

// The kernel's own three rules lead to the tables local, main and default.
inline bool own_rule(const PolicyRule& rule) {
  constexpr int kFirstOfTheKernel = 253;
  return rule.action != RuleAction::lookup || rule.table < kFirstOfTheKernel || rule.table > 255;
}

inline bool by_policy_rule(const Stuck& stuck) {
  return stuck.way && stuck.way->rule != nullptr && own_rule(*stuck.way->rule);
}

// Of the main table, that would lead there; null: none, or nobody knows.
inline const Route* main_route(const Stuck& stuck) {
  if (!stuck.node->routes.known()) return nullptr;
  const Route* route =
      routing_detail::best_in(*stuck.node->routes, routing_detail::kMain, stuck.to);
  return route != nullptr && leads_out(*route) ? route : nullptr;
}

// Those that may forbid a connection at once. A mark comes later, from a packet filter.
inline std::vector<const PolicyRule*> rules_of_connections(const Stuck& stuck) {
  auto rules = unfollowed_rules(*stuck.node, stuck.to.v6);
  std::erase_if(rules, [](const PolicyRule* rule) { return rule->action != RuleAction::other; });
  return rules;
}

// The way is there, and yet forbidden: by a rule whose selectors nobody can follow from here.
inline bool by_unfollowed_rule(const Stuck& stuck) {
  return !stuck.way && !stuck.answers && main_route(stuck) != nullptr &&
         !rules_of_connections(stuck).empty();
}

// A broadcast or multicast address: no route is wrong, rendezvous/master_addr tells.
inline bool to_no_machine(const Stuck& stuck) {
  if (!stuck.way || stuck.way->route == nullptr) return false;
  const RouteKind kind = stuck.way->route->kind;
  return kind == RouteKind::broadcast || kind == RouteKind::multicast;
}

// --- how bad ---

inline Severity severity_of(const JobSpec& job, const std::vector<Stuck>& rows) {
  std::vector<Purpose> purposes;
  for (const Stuck& row : rows) {
    purposes.insert(purposes.end(), row.purposes.begin(), row.purposes.end());
  }
  return capped_by_purposes(job, Severity::blocker, purposes);
}

inline std::vector<std::vector<Stuck>> by_node(const std::vector<Stuck>& all) {
  std::vector<std::vector<Stuck>> nodes;
  for (const Stuck& row : all) {
    const auto known = std::ranges::find_if(
        nodes, [&](const std::vector<Stuck>& rows) { return rows.front().node == row.node; });
    if (known == nodes.end()) {
      nodes.push_back({row});
    } else {
      known->push_back(row);
    }
  }
  return nodes;
}

inline Finding about_routing(const Case& c, const std::vector<Stuck>& rows, std::string code) {
  Finding finding{.code = std::move(code),
                  .severity = severity_of(c.cluster.job, rows),
                  .certainty = Certainty::proved,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = {rows.front().node->host}},
                  .summary = ""};
  for (const Stuck& row : rows) {
    if (row.answers) finding.certainty = Certainty::likely;
    if (find_node(c.cluster, row.towards) == nullptr) continue;
    const std::pair ends(row.node->host, row.towards);
    auto& pairs = finding.subjects.pairs;
    if (std::ranges::find(pairs, ends) == pairs.end()) pairs.push_back(ends);
  }
  return finding;
}

// --- words for ip(8) ---

inline std::string ip_command(const Address& address) {
  return address.v6 ? "ip -6" : "ip";
}

inline Address network_of(const Address& address, int prefix) {
  Address network = address;
  network.zone.clear();
  for (int bit = prefix; bit < address.bits(); ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    const auto mask = static_cast<unsigned>(0x80U >> static_cast<unsigned>(bit % 8));
    network.bytes.at(byte) = static_cast<std::uint8_t>(network.bytes.at(byte) & ~mask);
  }
  return network;
}

inline std::string prefix_text(const Address& address, int prefix) {  // zones do not count here
  return network_of(address, address.bits()).text() + "/" + fmt::to_string(prefix);
}

inline std::string target_list(const std::vector<Stuck>& rows) {
  std::vector<std::string> words;
  for (const Stuck& row : rows) {
    const std::string text = row.to.text();
    words.push_back(row.towards == text ? text : fmt::format("{} ({})", text, row.towards));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace distdoctor::checks
