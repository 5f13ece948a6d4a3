#include "collect/filter_text.h"

#include "base/secrets.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::size_t kMostText = 200;
constexpr std::string_view kBlanks = " \t\r\n";

std::size_t end_of_quote(std::string_view line, std::size_t begin, bool escapes) {
  std::size_t end = begin;
  while (end < line.size() && line[end] != '"') end += escapes && line[end] == '\\' ? 2U : 1U;
  return std::min(end, line.size());
}

FilterRule unknown_effect(std::string text) {
  return {.conditions = {{.field = FilterField::other}},
          .verdict = FilterVerdict::other,
          .text = std::move(text)};
}

bool meets_us(std::string_view hook) {
  constexpr std::array<std::string_view, 6> kHooks = {"ingress", "prerouting",  "input",
                                                      "output",  "postrouting", "egress"};
  return std::ranges::find(kHooks, hook) != kHooks.end();
}

// Chains in the order in which they are reached: all base chains, then where they lead.
class Walk {
 public:
  explicit Walk(std::vector<FilterChain>& chains) : chains_(chains), met_(chains.size()) {
    std::size_t place = 0;
    for (const FilterChain& chain : chains) by_name_.emplace(name_of(chain, chain.name), place++);
  }
  std::vector<std::size_t> order() {
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      if (meets_us(chains_[i].hook)) meet(i);
    }
    std::size_t next = 0;
    while (next < order_.size()) {  // it grows
      const std::size_t at = order_[next++];
      for (const FilterRule& rule : chains_[at].rules) follow(at, rule);
    }
    return std::move(order_);
  }

 private:
  using Name = std::tuple<FilterTool, std::string, std::string, std::string>;

  static Name name_of(const FilterChain& from, const std::string& chain) {
    return {from.tool, from.family, from.table, chain};
  }
  void meet(std::size_t i) {
    if (met_[i]) return;
    met_[i] = true;
    order_.push_back(i);
  }
  void follow(std::size_t from, const FilterRule& rule) {
    if (rule.target.empty()) return;
    const auto found = by_name_.find(name_of(chains_[from], rule.target));
    if (found != by_name_.end()) meet(found->second);
  }

  std::vector<FilterChain>& chains_;
  std::map<Name, std::size_t> by_name_;
  std::vector<bool> met_;
  std::vector<std::size_t> order_;
};

void cut(FilterChain& chain, std::size_t& left) {
  if (chain.rules.size() > left) {
    chain.rules.resize(left);
    chain.rules.push_back(unknown_effect("(more rules than are read)"));
    left = 0;
    return;
  }
  left -= chain.rules.size();
}

}  // namespace

std::vector<FilterWord> filter_words(std::string_view line, const FilterSyntax& syntax) {
  std::vector<FilterWord> words;
  std::size_t at = 0;
  while (at < line.size()) {
    if (kBlanks.find(line[at]) != std::string_view::npos) {
      ++at;
    } else if (line[at] == '"') {
      const std::size_t end = end_of_quote(line, at + 1, syntax.escapes);
      words.push_back({line.substr(at + 1, end - at - 1), true});
      at = end + 1;
    } else if (syntax.marks.find(line[at]) != std::string_view::npos) {
      words.push_back({line.substr(at++, 1), false});
    } else {
      std::size_t end = at;
      while (end < line.size() && line[end] != '"' &&
             kBlanks.find(line[end]) == std::string_view::npos &&
             syntax.marks.find(line[end]) == std::string_view::npos) {
        ++end;
      }
      words.push_back({line.substr(at, end - at), false});
      at = end;
    }
  }
  return words;
}

std::string filter_rule_text(std::string_view text) {
  return shortened(mask_value(printable(trim(text.substr(0, 4 * kMostText)))), kMostText);
}

void add_filter_rule(FilterChain& chain, FilterRule rule, std::size_t& left) {
  if (left == 0) return;
  if (--left == 0) rule = unknown_effect("(more rules than are read)");
  chain.rules.push_back(std::move(rule));
}

std::vector<FilterChain> keep_ours(std::vector<FilterChain> chains, std::size_t most) {
  std::vector<FilterChain> ours;
  std::size_t left = most;
  for (const std::size_t i : Walk(chains).order()) {
    if (left == 0 && chains[i].hook.empty()) continue;  // a jump to it leads nobody knows where
    cut(ours.emplace_back(std::move(chains[i])), left);
  }
  return ours;
}

}  // namespace distdoctor::collect
