// One rule of nft, decoded (man 8 nft, "Expressions" and "Statements").
#pragma once

#include <distdoctor/facts/firewall.h>

#include "collect/filter_text.h"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::collect {

inline constexpr FilterSyntax kNftSyntax = {.marks = "{},()|"};

struct NftVerdict {
  FilterVerdict verdict = FilterVerdict::other;
  std::string target = {};
};

// The elements of a set or a verdict map, in their order.
struct NftSet {
  std::vector<std::pair<std::string, NftVerdict>> elements = {};
  bool simple = true;  // false: too many, or of a kind that no condition here can hold
};
using NftSets = std::map<std::string, NftSet, std::less<>>;

// What stands between the braces of a set, a map, or in a rule.
NftSet parse_nft_elements(std::span<const FilterWord> words);

struct NftRuleText {
  std::string_view text;    // without its handle
  std::string_view family;  // of the table
  int handle = 0;
};

// One rule, or one for each element of a verdict map; none where it only counts or logs. `written`
// counts the elements of sets that went into conditions.
std::vector<FilterRule> parse_nft_rule(const NftRuleText& rule,
                                       const NftSets& sets,
                                       std::size_t& written);

}  // namespace distdoctor::collect
