// Decoded rules of a packet filter as one line each, for tables of tests.
#pragma once

#include <distdoctor/facts/firewall.h>

#include <string>
#include <vector>

namespace distdoctor::testing {

// "protocol tcp, not source 10.0.0.0/8|10.1.0.1 -> jump other"
inline std::string described(const FilterRule& rule) {
  std::string text;
  for (const FilterCondition& condition : rule.conditions) {
    text += text.empty() ? "" : ", ";
    text += condition.negated ? "not " : "";
    const bool named = condition.field == FilterField::other && !condition.values.empty();
    const std::size_t first = named ? 1 : 0;
    text += named ? condition.values[0] : std::string(slug(condition.field));
    for (std::size_t i = first; i < condition.values.size(); ++i) {
      text += (i == first ? " " : "|") + condition.values[i];
    }
  }
  text += text.empty() ? "-> " : " -> ";
  if (rule.verdict == FilterVerdict::none) return text + rule.target;
  text += slug(rule.verdict);
  return rule.target.empty() ? text : text + " " + rule.target;
}

inline std::vector<std::string> described(const std::vector<FilterRule>& rules) {
  std::vector<std::string> lines;
  for (const FilterRule& rule : rules) lines.push_back(described(rule));
  return lines;
}

}  // namespace distdoctor::testing
