// What a node's packet filter does to the first packets of a TCP connection (man 8 nft, "Overview
// of packet processing"; net/netfilter/nf_tables_core.c). In three values: what cannot be followed
// from here makes the answer unknown, never a guess. Rules are read as they stand, so that a packet
// costs what the rules cost that it meets.
#pragma once

#include <distdoctor/facts/firewall.h>
#include <distdoctor/filter_condition.h>
#include <distdoctor/filter_outlook.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor {
namespace packet_filter_detail {

inline constexpr int kDeepest = 64;        // jumps within jumps; nft allows 16
inline constexpr int kMostSteps = 50'000;  // rules that one packet is asked of

// Where a packet on its way in or out comes by, in this order.
inline int hook_order(Way way, std::string_view hook) {
  constexpr std::array<std::string_view, 3> kIn = {"ingress", "prerouting", "input"};
  constexpr std::array<std::string_view, 3> kOut = {"output", "postrouting", "egress"};
  const auto& hooks = way == Way::in ? kIn : kOut;
  const auto found = std::ranges::find(hooks, hook);
  return found == hooks.end() ? -1 : static_cast<int>(found - hooks.begin());
}

// The base chains that see such a packet, in their order.
inline std::vector<const FilterChain*> met_by(const Firewall& firewall, const Packet& packet) {
  const std::string_view family = packet.destination.v6 ? "ip6" : "ip";
  std::vector<const FilterChain*> met;
  for (const FilterChain& chain : firewall.chains) {
    const bool concerned = chain.family == family || chain.family == "inet" ||
                           chain.family == "netdev" || (chain.family == "bridge" && packet.bridged);
    if (concerned && hook_order(packet.way, chain.hook) >= 0) met.push_back(&chain);
  }
  std::ranges::stable_sort(met, {}, [&](const FilterChain* chain) {
    return std::pair(hook_order(packet.way, chain->hook), chain->priority);
  });
  return met;
}

// Follows one packet.
class Walk {
 public:
  Walk(const std::vector<FilterChain>& chains, const Packet& packet)
      : chains_(chains), packet_(packet) {}

  // False: from here on nothing is known.
  bool enter(const FilterChain& base) {
    if (base.family == "bridge") return crosses(base);
    may_accept_ = may_stop_ = false;
    leaving_ = nullptr;
    base_ = &base;
    End end = run(base, 0);
    if (end.kind == End::through && base.policy != FilterVerdict::accept) end = by_policy(base);
    if (lost_) return false;
    const bool stops = end.kind == End::stop;
    if (stops && !may_accept_) {
      result_.stops.push_back(stop_of(end, base));
    } else if (stops || may_stop_) {
      undecided_ = true;
    }
    return true;
  }

  FilterResult result(bool known) && {
    if (!result_.stops.empty()) {
      result_.says = FilterSays::stopped;
    } else if (!known || undecided_) {
      result_.says = FilterSays::unknown;
      result_.unsure = std::move(unsure_);
      result_.may_stop = std::move(suspects_);
    }
    return std::move(result_);
  }

 private:
  // Where a chain leaves the packet, if it is there at all.
  struct End {
    enum Kind : std::uint8_t { through, accept, stop };
    Kind kind = through;
    const FilterChain* chain = nullptr;  // of the rule that ends it
    const FilterRule* rule = nullptr;    // null: the policy
  };

  // Its chains see frames, some of them of other hosts: only an empty one is sure to do nothing.
  bool crosses(const FilterChain& chain) {
    if (chain.rules.empty() && chain.policy == FilterVerdict::accept) return true;
    unsure_ = "chain bridge " + chain.table + " " + chain.name;
    return false;
  }
  [[nodiscard]] Holds match_of(const FilterRule& rule) const {
    Holds all = Holds::yes;
    for (const FilterCondition& condition : rule.conditions) {
      const Holds one = holds(condition, packet_, mark_known_);
      if (one == Holds::no) return one;
      all = std::min(all, one);
    }
    return all;
  }

  End run(const FilterChain& chain, int depth) {
    bool uncertain = false;  // it may have gone back already
    for (const FilterRule& rule : chain.rules) {
      if (!goes_on(chain, rule, depth)) return {};
      const Holds match = match_of(rule);
      if (match == Holds::no) continue;
      const End end = end_of(chain, rule, depth);
      if (depth == 0) note_leaving(rule);
      const bool over = match == Holds::yes && ends(end, rule);
      if (over && !uncertain) return end;
      note(end, chain, rule);
      if (over) return {};
      uncertain = uncertain || leaves(rule);
    }
    return {};
  }
  bool goes_on(const FilterChain& chain, const FilterRule& rule, int depth) {
    if (++steps_ > kMostSteps || depth > kDeepest) lose(chain, rule);
    return !lost_;
  }

  static bool ends(const End& end, const FilterRule& rule) {
    return end.kind != End::through || leaves(rule);
  }
  void note_leaving(const FilterRule& rule) {
    if (leaves(rule) && leaving_ == nullptr) leaving_ = &rule;
  }
  static bool leaves(const FilterRule& rule) {
    return rule.verdict == FilterVerdict::back || rule.verdict == FilterVerdict::go;
  }

  End end_of(const FilterChain& chain, const FilterRule& rule, int depth) {
    switch (rule.verdict) {
      case FilterVerdict::accept:
        return {.kind = End::accept, .chain = &chain, .rule = &rule};
      case FilterVerdict::drop:
      case FilterVerdict::reject:
        return {.kind = End::stop, .chain = &chain, .rule = &rule};
      case FilterVerdict::jump:
      case FilterVerdict::go:
        if (const FilterChain* next = target_of(chain, rule)) return run(*next, depth + 1);
        lose(chain, rule);
        return {};
      case FilterVerdict::other:
        if (hands_over(rule)) suspect({.kind = End::stop, .chain = &chain, .rule = &rule});
        lose(chain, rule);
        return {};
      case FilterVerdict::none:
        if (rule.target == kSetsMark) mark_known_ = false;
        break;
      case FilterVerdict::back:
        break;
    }
    return {};
  }
  // Null: it was not read.
  [[nodiscard]] const FilterChain* target_of(const FilterChain& from,
                                             const FilterRule& rule) const {
    const auto found = std::ranges::find_if(chains_, [&](const FilterChain& chain) {
      return chain.name == rule.target && chain.table == from.table &&
             chain.family == from.family && chain.tool == from.tool;
    });
    return found == chains_.end() ? nullptr : &*found;
  }

  // An end that the packet may come to, or not.
  void note(const End& end, const FilterChain& chain, const FilterRule& rule) {
    if (end.kind == End::through) return;
    (end.kind == End::accept ? may_accept_ : may_stop_) = true;
    if (end.kind == End::stop) suspect(end);
    name(chain, rule);
  }
  // To a program, which may never give it back.
  static bool hands_over(const FilterRule& rule) {
    return rule.text.find("QUEUE") != std::string::npos ||
           rule.text.find("queue ") != std::string::npos;
  }
  void suspect(const End& end) {
    constexpr std::size_t kMost = 8;
    if (suspects_.size() >= kMost) return;
    const FilterStop stop = stop_of(end, *base_);
    if (std::ranges::find(suspects_, stop) == suspects_.end()) suspects_.push_back(stop);
  }
  void lose(const FilterChain& chain, const FilterRule& rule) {
    lost_ = true;
    name(chain, rule);
  }
  void name(const FilterChain& chain, const FilterRule& rule) {
    if (!unsure_.empty()) return;
    unsure_ = "rule \"" + rule.text + "\" of chain " + chain.family + " " + chain.table + " " +
              chain.name;
  }

  // The policy comes after the rules, unless one of them led away.
  [[nodiscard]] static End by_policy(const FilterChain& base) {
    return {.kind = End::stop, .chain = &base, .rule = nullptr};
  }
  [[nodiscard]] FilterStop stop_of(const End& end, const FilterChain& base) const {
    const FilterChain& at = *end.chain;
    FilterStop stop{.tool = at.tool,
                    .family = at.family,
                    .table = at.table,
                    .chain = at.name,
                    .base = base.name};
    if (end.rule == nullptr) {
      stop.before = leaving_ == nullptr ? 0 : leaving_->number;
      stop.text = "policy drop";
      return stop;
    }
    const FilterRule& rule = *end.rule;
    stop.number = stop.before = rule.number;
    stop.verdict = rule.verdict;
    stop.packets = rule.packets;
    stop.text = rule.text;
    return stop;
  }

  const std::vector<FilterChain>& chains_;
  const Packet& packet_;
  FilterResult result_;
  std::string unsure_;
  const FilterChain* base_ = nullptr;
  std::vector<FilterStop> suspects_;
  const FilterRule* leaving_ = nullptr;
  int steps_ = 0;
  bool mark_known_ = true;
  bool may_accept_ = false;
  bool may_stop_ = false;
  bool undecided_ = false;
  bool lost_ = false;
};

}  // namespace packet_filter_detail

// Any ruleset will do: jumps in a circle and chains that call each other a thousand times end as
// unknown.
inline FilterResult judge_packet(const Firewall& firewall, const Packet& packet) {
  packet_filter_detail::Walk walk(firewall.chains, packet);
  bool known = true;
  for (const FilterChain* base : packet_filter_detail::met_by(firewall, packet)) {
    known = walk.enter(*base);
    if (!known) break;
  }
  return std::move(walk).result(known);
}

namespace packet_filter_detail {

// Where these ports begin and end within the range.
inline void add_edges(const std::vector<std::string>& values,
                      PortRange range,
                      std::set<int>& edges) {
  for (const std::string& value : values) {
    const auto ports = filter_detail::port_range(value);
    if (!ports) continue;
    for (const int at : {int{ports->first}, ports->last + 1}) {
      if (at > range.first && at <= range.last) edges.insert(at);
    }
  }
}

inline std::set<int> edges_in(const Firewall& firewall, PortRange range) {
  std::set<int> edges = {range.first};
  const auto add = [&](const FilterCondition& condition) {
    const bool ports = condition.field == FilterField::destination_port ||
                       condition.field == FilterField::source_port;  // of an answer
    if (ports) add_edges(condition.values, range, edges);
  };
  for (const FilterChain& chain : firewall.chains) {
    for (const FilterRule& rule : chain.rules) std::ranges::for_each(rule.conditions, add);
  }
  return edges;
}

}  // namespace packet_filter_detail

// `range` in pieces whose ports no rule tells apart; where there are more than `most`, the last one
// holds the rest.
inline std::vector<PortRange> port_pieces(const Firewall& firewall,
                                          PortRange range,
                                          std::size_t most) {
  const std::set<int> begins = packet_filter_detail::edges_in(firewall, range);
  std::vector<PortRange> pieces;
  for (auto begin = begins.begin(); begin != begins.end() && pieces.size() < most; ++begin) {
    const auto next = std::next(begin);
    const bool last = next == begins.end() || pieces.size() + 1 == most;
    pieces.push_back({static_cast<std::uint16_t>(*begin),
                      last ? range.last : static_cast<std::uint16_t>(*next - 1)});
  }
  return pieces;
}

}  // namespace distdoctor
