#include "collect/nft_rules.h"

#include "base/text.h"
#include "collect/nft_rule.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace distdoctor::collect {
namespace {

bool word_is(const std::vector<FilterWord>& words, std::size_t at, std::string_view text) {
  return at < words.size() && !words[at].quoted && words[at].text == text;
}

// Braces that are left open, outside quotes and comments at the end.
int open_braces(const std::vector<FilterWord>& words) {
  int open = 0;
  for (const FilterWord& word : words) {
    if (word.quoted) continue;
    if (word.text == "#") break;
    if (word.text == "{") ++open;
    if (word.text == "}") --open;
  }
  return open;
}

// linux/netfilter_ipv4.h, as nft names them for all families but bridge.
std::optional<int> priority_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, int>, 6> kNames = {{{"raw", -300},
                                                                       {"mangle", -150},
                                                                       {"dstnat", -100},
                                                                       {"filter", 0},
                                                                       {"security", 50},
                                                                       {"srcnat", 100}}};
  const auto found = std::ranges::find(kNames, name, &std::pair<std::string_view, int>::first);
  if (found != kNames.end()) return found->second;
  return parse_int<int>(name);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(split_lines(text)) {}

  std::vector<FilterChain> read() {
    while (next_ < lines_.size()) {
      const auto words = words_of(lines_[next_++]);
      if (words.size() >= 4 && word_is(words, 0, "table") && word_is(words, 3, "{")) {
        table(words[1].text, words[2].text);
      }
    }
    return std::move(chains_);
  }

 private:
  static std::vector<FilterWord> words_of(std::string_view line) {
    return filter_words(line, kNftSyntax);
  }
  static bool closes(std::string_view line) { return trim(line) == "}"; }

  void table(std::string_view family, std::string_view name) {
    const std::size_t first = chains_.size();
    bool dormant = false;
    sets_.clear();
    left_ = kMostRulesRead;
    while (next_ < lines_.size() && !closes(lines_[next_])) {
      const auto words = words_of(lines_[next_++]);
      if (words.size() >= 3 && word_is(words, 0, "chain")) {
        chains_.push_back({.tool = FilterTool::nft,
                           .family = std::string(family),
                           .table = std::string(name),
                           .name = std::string(words[1].text)});
        chain(chains_.back());
      } else if (words.size() >= 3 && (word_is(words, 0, "set") || word_is(words, 0, "map"))) {
        sets_[std::string(words[1].text)] = set();
      } else if (word_is(words, 0, "flags")) {
        dormant = std::ranges::find(words, "dormant", &FilterWord::text) != words.end();
      } else {
        skip_block(open_braces(words));
      }
    }
    ++next_;
    if (dormant) chains_.resize(first);
  }
  void skip_block(int open) {
    while (open > 0 && next_ < lines_.size()) open += open_braces(words_of(lines_[next_++]));
  }

  // A line with those that its braces run over.
  std::string whole_line() {
    std::string whole(trim(lines_[next_]));
    int open = open_braces(words_of(lines_[next_++]));
    while (open > 0 && next_ < lines_.size()) {
      open += open_braces(words_of(lines_[next_]));
      whole += " " + std::string(trim(lines_[next_++]));
    }
    return whole;
  }

  NftSet set() {
    NftSet read;
    while (next_ < lines_.size() && !closes(lines_[next_])) {
      const std::string line = whole_line();
      const auto words = words_of(line);
      if (word_is(words, 0, "elements") && word_is(words, 1, "=") && word_is(words, 2, "{")) {
        read = parse_nft_elements(std::span(words).subspan(3, words.size() - 3));
      }
    }
    ++next_;
    return read;
  }

  void chain(FilterChain& chain) {
    devices_.clear();
    while (next_ < lines_.size() && !closes(lines_[next_])) {
      const std::string line = whole_line();
      const auto words = words_of(line);
      if (word_is(words, 0, "type") && chain.rules.empty()) {
        base(words, chain);
      } else if (!word_is(words, 0, "comment") && !word_is(words, 0, "flags")) {
        rule(line, chain);
      }
    }
    ++next_;
    if (devices_.empty() || chain.policy == FilterVerdict::accept) return;
    chain.policy = FilterVerdict::accept;  // of other devices' packets, which it does not see
    add(chain, {.verdict = FilterVerdict::drop, .text = "policy drop"});
  }
  // A chain of one device's packets: each of its rules is about that device.
  void add(FilterChain& chain, FilterRule rule) {
    if (!devices_.empty()) {
      const auto field =
          chain.hook == "egress" ? FilterField::out_interface : FilterField::in_interface;
      rule.conditions.insert(rule.conditions.begin(), {.field = field, .values = devices_});
    }
    add_filter_rule(chain, std::move(rule), left_);
  }

  void rule(std::string_view line, FilterChain& chain) {
    constexpr std::string_view kHandle = "# handle ";
    const auto at = line.rfind(kHandle);
    const auto handle = at == std::string_view::npos
                            ? std::nullopt
                            : parse_int<int>(trim(line.substr(at + kHandle.size())));
    const NftRuleText text{
        .text = trim(line.substr(0, at)), .family = chain.family, .handle = handle.value_or(0)};
    for (FilterRule& read : parse_nft_rule(text, sets_, written_)) {
      add(chain, std::move(read));
    }
  }

  // "type filter hook input priority filter - 5; policy drop;"
  void base(const std::vector<FilterWord>& words, FilterChain& chain) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const std::string_view value = bare(words, i + 1);
      if (word_is(words, i, "hook")) chain.hook = value;
      if (word_is(words, i, "policy") && value == "drop") chain.policy = FilterVerdict::drop;
      if (word_is(words, i, "device")) devices_ = {std::string(value)};
      if (word_is(words, i, "devices")) devices_ = listed(words, i + 3);
      if (word_is(words, i, "priority")) chain.priority = priority(words, i + 1);
    }
  }
  static std::string_view bare(const std::vector<FilterWord>& words, std::size_t at) {
    if (at >= words.size()) return {};
    return words[at].text.substr(0, words[at].text.find(';'));
  }
  static std::vector<std::string> listed(const std::vector<FilterWord>& words, std::size_t from) {
    std::vector<std::string> names;
    for (std::size_t i = from; i < words.size() && !word_is(words, i, "}"); ++i) {
      if (words[i].text != ",") names.emplace_back(words[i].text);
    }
    return names;
  }
  static int priority(const std::vector<FilterWord>& words, std::size_t at) {
    const int named = priority_named(bare(words, at)).value_or(0);
    const int more = parse_int_within<int>(bare(words, at + 2), 0, 100'000).value_or(0);
    const std::string_view sign = words[at].text.ends_with(';') ? "" : bare(words, at + 1);
    return sign == "+" ? named + more : sign == "-" ? named - more : named;
  }

  std::vector<std::string_view> lines_;
  std::size_t next_ = 0;
  NftSets sets_;
  std::size_t written_ = 0;
  std::size_t left_ = kMostRulesRead;
  std::vector<std::string> devices_;  // of the chain that is being read
  std::vector<FilterChain> chains_;
};

}  // namespace

std::vector<FilterChain> parse_nft_ruleset(std::string_view text) {
  return Reader(text).read();
}

}  // namespace distdoctor::collect
