// The packet filter of a node, decoded from `nft -j list ruleset` and iptables-save, of both kinds
// (man 8 nft, man 8 iptables-extensions). Only chains that a packet to or from this host can meet.
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

// What a condition looks at. `other` is one that we do not decode: whether it holds is not known.
enum class FilterField : std::uint8_t {
  source,       // addresses with prefix: "10.0.0.0/24", "fd00::1/128"; ranges "10.0.0.1-10.0.0.9"
  destination,  // the same
  protocol,     // "tcp", "udp", "icmp", "icmpv6"
  source_port,  // "29500", "1024-65535"
  destination_port,
  in_interface,  // names; a trailing '*' matches what begins so
  out_interface,
  state,   // of conntrack: "new", "established", "related", "invalid", "untracked"
  family,  // "ip", "ip6"
  limit,   // of a rate: holds for the first packets, then not
  other
};
template <>
struct EnumNames<FilterField> {
  static constexpr std::string_view values[] = {
      "source",           "destination",  "protocol",      "source port",
      "destination port", "in interface", "out interface", "state",
      "family",           "limit",        "other"};
};

struct FilterCondition {
  FilterField field = FilterField::other;
  bool negated = false;
  std::vector<std::string> values = {};  // any of them; sets are written out
  bool operator==(const FilterCondition&) const = default;
};

enum class FilterVerdict : std::uint8_t { none, accept, drop, reject, jump, go, back, other };
template <>
struct EnumNames<FilterVerdict> {
  // none: it only counts or logs; other: queue, a verdict map that we do not decode, ...
  static constexpr std::string_view values[] = {"none", "accept", "drop",   "reject",
                                                "jump", "goto",   "return", "other"};
};

struct FilterRule {
  std::vector<FilterCondition> conditions = {};  // all of them
  FilterVerdict verdict = FilterVerdict::none;
  std::string target = {};                   // of jump and goto: a chain of the same table
  std::optional<std::int64_t> packets = {};  // of its counter; none: it has none
  int number = 0;         // nft: its handle; iptables: its number in the chain, from 1
  std::string text = {};  // as the tool prints it, 200 bytes at most
  bool operator==(const FilterRule&) const = default;
};

enum class FilterTool : std::uint8_t { nft, iptables, iptables_legacy };
template <>
struct EnumNames<FilterTool> {
  // iptables: a table that iptables-nft made and that nft shows too, told once
  static constexpr std::string_view values[] = {"nft", "iptables", "iptables-legacy"};
};

struct FilterChain {
  FilterTool tool = FilterTool::nft;
  std::string family = {};  // "inet", "ip", "ip6"
  std::string table = {};
  std::string name = {};
  std::string hook = {};  // "input", "output", "prerouting", ...; empty: only jumps lead here
  int priority = 0;       // lower ones come first; an accept ends this base chain only
  FilterVerdict policy = FilterVerdict::accept;
  std::vector<FilterRule> rules = {};
  bool operator==(const FilterChain&) const = default;
};

struct Firewall {
  std::vector<FilterChain> chains = {};
  bool firewalld = false;  // runs, and owns its tables
  bool ufw = false;        // is active
  bool operator==(const Firewall&) const = default;
};

template <class V, Is<FilterCondition> T>
void fields(V& v, T& x) {
  v("field", x.field);
  v("negated", x.negated);
  v("values", x.values);
}
template <class V, Is<FilterRule> T>
void fields(V& v, T& x) {
  v("conditions", x.conditions);
  v("verdict", x.verdict);
  v("target", x.target);
  v("packets", x.packets);
  v("number", x.number);
  v("text", x.text);
}
template <class V, Is<FilterChain> T>
void fields(V& v, T& x) {
  v("tool", x.tool);
  v("family", x.family);
  v("table", x.table);
  v("name", x.name);
  v("hook", x.hook);
  v("priority", x.priority);
  v("policy", x.policy);
  v("rules", x.rules);
}
template <class V, Is<Firewall> T>
void fields(V& v, T& x) {
  v("chains", x.chains);
  v("firewalld", x.firewalld);
  v("ufw", x.ufw);
}

}  // namespace distdoctor
