// What the readers of nft's and iptables' rules share: words, and what is kept of the chains.
#pragma once

#include <distdoctor/facts/firewall.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// A node of Kubernetes may have tens of thousands of rules.
inline constexpr std::size_t kMostFilterRules = 5'000;
inline constexpr std::size_t kMostRulesRead = 20'000;    // of one table, before any is left out
inline constexpr std::size_t kMostSetElements = 4'096;   // of one condition
inline constexpr std::size_t kMostSetsWritten = 65'536;  // elements of sets, in all conditions

struct FilterWord {
  std::string_view text = {};  // without its quotes
  bool quoted = false;
  bool operator==(const FilterWord&) const = default;
};

struct FilterSyntax {
  std::string_view marks;  // words of their own, wherever they stand outside quotes
  bool escapes = false;    // a backslash keeps a quote from ending the text
};

// An unclosed quote runs to the end.
std::vector<FilterWord> filter_words(std::string_view line, const FilterSyntax& syntax);

// The text of a rule as it may leave the node: printable, its secrets masked, 200 bytes at most.
std::string filter_rule_text(std::string_view text);

// Adds the rule, or, where the chain is full, one whose effect nobody knows.
void add_filter_rule(FilterChain& chain, FilterRule rule, std::size_t& left);

// Takes out the chains that no packet to or from this host meets, and what is beyond the bound: a
// chain that had to be cut ends in a rule whose effect is not known.
std::vector<FilterChain> keep_ours(std::vector<FilterChain> chains,
                                   std::size_t most = kMostFilterRules);

}  // namespace distdoctor::collect
