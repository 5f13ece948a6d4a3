// What a node's packet filter says of a connection, as values.
#pragma once

#include <distdoctor/enum_names.h>
#include <distdoctor/facts/firewall.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

struct PortRange {  // both ends included
  std::uint16_t first;
  std::uint16_t last;
  bool operator==(const PortRange&) const = default;

  // "29500" or "32768-60999"; ufw and iptables want a colon.
  [[nodiscard]] std::string text(char separator = '-') const {
    return first == last ? std::to_string(first)
                         : std::to_string(first) + separator + std::to_string(last);
  }
};

enum class Way : std::uint8_t { in, out };  // connections that the peers open, or that we open

// What ends a packet in one base chain: a rule, or the policy of the chain.
struct FilterStop {
  FilterTool tool = FilterTool::nft;
  std::string family = {};
  std::string table = {};
  std::string chain = {};  // where the rule stands; of a policy the base chain
  std::string base = {};   // the base chain that led there
  int number = 0;          // as FilterRule's; 0: the policy
  int before = 0;  // the rule of `chain` that an accept must stand before; 0: it goes to the end
  FilterVerdict verdict = FilterVerdict::drop;
  std::optional<std::int64_t> packets = {};  // that the rule has counted
  std::string text = {};                     // of the rule; "policy drop"
  bool answer = false;  // it ends the answers, which pass the node the other way
  bool operator==(const FilterStop&) const = default;
};

enum class FilterSays : std::uint8_t { passes, stopped, unknown };
template <>
struct EnumNames<FilterSays> {
  static constexpr std::string_view values[] = {"passes", "stopped", "unknown"};
};

struct FilterResult {
  FilterSays says = FilterSays::passes;
  std::vector<FilterStop> stops = {};  // one for each base chain that ends it; the first decides
  std::string unsure = {};             // unknown: the rule that nobody can follow from here
  std::vector<FilterStop> may_stop =
      {};  // unknown: those that would end it if their conditions hold
  bool operator==(const FilterResult&) const = default;
};

}  // namespace distdoctor
