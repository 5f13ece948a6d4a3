#include "collect/iptables_rules.h"

#include <distdoctor/filter_condition.h>

#include "base/text.h"
#include "collect/filter_text.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace distdoctor::collect {
namespace {

using Words = std::span<const FilterWord>;
constexpr FilterSyntax kSyntax = {.marks = "", .escapes = true};

bool is(const FilterWord& word, std::string_view text) {
  return !word.quoted && word.text == text;
}

// --- built-in chains: linux/netfilter_ipv4.h, iptables' nft.c ---

struct BuiltIn {
  std::string_view table;
  std::string_view chain;
  std::string_view hook;
  int priority;
};
constexpr std::array kBuiltIn = {
    BuiltIn{"raw", "PREROUTING", "prerouting", -300},
    BuiltIn{"raw", "OUTPUT", "output", -300},
    BuiltIn{"mangle", "PREROUTING", "prerouting", -150},
    BuiltIn{"mangle", "INPUT", "input", -150},
    BuiltIn{"mangle", "FORWARD", "forward", -150},
    BuiltIn{"mangle", "OUTPUT", "output", -150},
    BuiltIn{"mangle", "POSTROUTING", "postrouting", -150},
    BuiltIn{"nat", "PREROUTING", "prerouting", -100},
    BuiltIn{"nat", "OUTPUT", "output", -100},
    BuiltIn{"nat", "INPUT", "input", 100},
    BuiltIn{"nat", "POSTROUTING", "postrouting", 100},
    BuiltIn{"filter", "INPUT", "input", 0},
    BuiltIn{"filter", "FORWARD", "forward", 0},
    BuiltIn{"filter", "OUTPUT", "output", 0},
    BuiltIn{"security", "INPUT", "input", 50},
    BuiltIn{"security", "FORWARD", "forward", 50},
    BuiltIn{"security", "OUTPUT", "output", 50},
};

// --- options ---

struct Option {
  std::string_view name;
  FilterField field;
  std::string_view named = {};  // of `other`: as filter_condition.h names it
};
constexpr std::array kOptions = {
    Option{"-s", FilterField::source},
    Option{"-d", FilterField::destination},
    Option{"--src-range", FilterField::source},
    Option{"--dst-range", FilterField::destination},
    Option{"-p", FilterField::protocol},
    Option{"-i", FilterField::in_interface},
    Option{"-o", FilterField::out_interface},
    Option{"--sport", FilterField::source_port},
    Option{"--sports", FilterField::source_port},
    Option{"--dport", FilterField::destination_port},
    Option{"--dports", FilterField::destination_port},
    Option{"--ctstate", FilterField::state},
    Option{"--state", FilterField::state},
    Option{"--src-type", FilterField::other, kSourceType},
    Option{"--dst-type", FilterField::other, kDestinationType},
    Option{"--pkt-type", FilterField::other, kPacketType},
    Option{"--mark", FilterField::other, kMark},
    Option{"--limit", FilterField::limit},
};

// As nft would write it.
std::string value_of(const Option& option, std::string_view text) {
  std::string value(text);
  switch (option.field) {
    case FilterField::source_port:
    case FilterField::destination_port:
      std::ranges::replace(value, ':', '-');
      break;
    case FilterField::in_interface:
    case FilterField::out_interface:
      if (value.ends_with('+')) value.back() = '*';
      break;
    case FilterField::state:
    case FilterField::other:
      value = to_lower(value);
      break;
    default:
      break;
  }
  const bool whole = option.named == kMark && value.find('/') == std::string::npos;
  return whole ? value + "/0xffffffff" : value;
}

// --- targets ---

struct Target {
  std::string_view name;
  FilterVerdict verdict;
};
constexpr std::array kTargets = {
    Target{"ACCEPT", FilterVerdict::accept},     Target{"DROP", FilterVerdict::drop},
    Target{"REJECT", FilterVerdict::reject},     Target{"RETURN", FilterVerdict::back},
    Target{"MASQUERADE", FilterVerdict::accept}, Target{"SNAT", FilterVerdict::accept},
    Target{"LOG", FilterVerdict::none},          Target{"NFLOG", FilterVerdict::none},
    Target{"TRACE", FilterVerdict::none},        Target{"AUDIT", FilterVerdict::none},
    Target{"CONNMARK", FilterVerdict::none},     Target{"CLASSIFY", FilterVerdict::none},
    Target{"DSCP", FilterVerdict::none},         Target{"TOS", FilterVerdict::none},
    Target{"TTL", FilterVerdict::none},          Target{"HL", FilterVerdict::none},
    Target{"TCPMSS", FilterVerdict::none},       Target{"SECMARK", FilterVerdict::none},
    Target{"CONNSECMARK", FilterVerdict::none},  Target{"CHECKSUM", FilterVerdict::none},
    Target{"SET", FilterVerdict::none},          Target{"RATEEST", FilterVerdict::none},
    Target{"TEE", FilterVerdict::none},          Target{"TCPOPTSTRIP", FilterVerdict::none}};

bool has(Words options, std::string_view option) {
  return std::ranges::any_of(options, [&](const FilterWord& word) { return is(word, option); });
}

bool sets_mark(std::string_view target, Words options) {
  return target == "MARK" || (target == "CONNMARK" && has(options, "--restore-mark"));
}

FilterVerdict verdict_of(std::string_view target, Words options) {
  if (target == "CT") return has(options, "--notrack") ? FilterVerdict::other : FilterVerdict::none;
  const auto found = std::ranges::find(kTargets, target, &Target::name);
  return found == kTargets.end() ? FilterVerdict::other : found->verdict;
}

// --- one rule ---

class Decoder {
 public:
  explicit Decoder(Words words) : words_(words) {}

  // `chains`: of this table, so that their names are known for what they are.
  template <class Known>
  FilterRule decode(const Known& chains) {
    while (!words_.empty()) option(chains);
    return std::move(rule_);
  }

 private:
  FilterWord next() {
    if (words_.empty()) return {};
    const FilterWord word = words_.front();
    words_ = words_.subspan(1);
    return word;
  }
  [[nodiscard]] bool at_option() const {
    return words_.empty() || is(words_[0], "!") ||
           (!words_[0].quoted && words_[0].text.starts_with('-'));
  }
  void skip_values() {
    while (!at_option()) next();
  }

  template <class Known>
  void option(const Known& chains) {
    const bool negated = is(words_[0], "!");
    if (negated) next();
    const std::string_view name = next().text;
    if (name == "-m" || name == "--comment" || name == "--limit-burst") {
      next();
    } else if (name == "-j" || name == "-g") {
      target(name == "-g", chains);
    } else if (name == "--rt-type") {  // of IPv6: a header that no packet of a job has
      next();
      rule_.conditions.push_back(
          {.field = FilterField::protocol, .negated = negated, .values = {"ipv6-route"}});
    } else if (name == "--tcp-flags") {
      const std::string mask(next().text);
      rule_.conditions.push_back(
          {.field = FilterField::other,
           .negated = negated,
           .values = {std::string(kTcpFlags), to_lower(mask + "/" + std::string(next().text))}});
    } else {
      condition(name, negated);
    }
  }

  void condition(std::string_view name, bool negated) {
    const auto known = std::ranges::find(kOptions, name, &Option::name);
    if (known == kOptions.end()) {
      rule_.conditions.push_back({.field = FilterField::other});
      return skip_values();
    }
    const std::string_view text = next().text;
    if (known->field == FilterField::limit) {
      rule_.conditions.push_back({.field = FilterField::limit});
      return;
    }
    FilterCondition& added =
        rule_.conditions.emplace_back(FilterCondition{.field = known->field, .negated = negated});
    if (!known->named.empty()) added.values.emplace_back(known->named);
    for (const auto part : split(text, ',')) added.values.push_back(value_of(*known, part));
  }

  template <class Known>
  void target(bool go, const Known& chains) {
    const std::string name(next().text);
    if (chains.contains(name)) {
      rule_.verdict = go ? FilterVerdict::go : FilterVerdict::jump;
      rule_.target = name;
    } else if (sets_mark(name, words_)) {
      rule_.target = kSetsMark;
    } else {
      rule_.verdict = verdict_of(name, words_);
    }
    words_ = {};
  }

  Words words_;
  FilterRule rule_;
};

// --- the tables ---

class Reader {
 public:
  Reader(FilterTool tool, std::string_view family) : tool_(tool), family_(family) {}

  std::vector<FilterChain> read(std::string_view text) {
    for (const auto line : split_lines(text)) {
      if (line.starts_with('*')) {
        table_ = trim(line.substr(1));
        places_.clear();
        left_ = kMostRulesRead;
      } else if (line.starts_with(':')) {
        chain(line.substr(1));
      } else if (line.starts_with('[') || line.starts_with("-A ")) {
        rule(line);
      }
    }
    return std::move(chains_);
  }

 private:
  struct Place {
    std::size_t chain;
    int rules = 0;
  };

  // "INPUT ACCEPT [0:0]", "MINE - [0:0]"
  void chain(std::string_view line) {
    const auto words = split_words(line);
    if (words.size() < 2) return;
    places_.insert_or_assign(std::string(words[0]), Place{chains_.size()});
    FilterChain& added = chains_.emplace_back(FilterChain{.tool = tool_,
                                                          .family = std::string(family_),
                                                          .table = std::string(table_),
                                                          .name = std::string(words[0])});
    const auto built_in = std::ranges::find_if(kBuiltIn, [&](const BuiltIn& known) {
      return known.table == table_ && known.chain == words[0];
    });
    if (built_in == kBuiltIn.end() || words[1] == "-") return;
    added.hook = built_in->hook;
    added.priority = built_in->priority;
    if (words[1] == "DROP") added.policy = FilterVerdict::drop;
  }

  // "[12:720] -A INPUT -p tcp -j DROP"
  void rule(std::string_view line) {
    std::optional<std::int64_t> packets;
    if (line.starts_with('[')) {
      const auto end = std::min(line.find(']'), line.size() - 1);
      packets = parse_int<std::int64_t>(line.substr(1, std::min(line.find(':'), end) - 1));
      line = trim(line.substr(end + 1));
    }
    const auto words = filter_words(line, kSyntax);
    if (words.size() < 2 || !is(words[0], "-A")) return;
    const auto place = places_.find(words[1].text);
    if (place == places_.end()) return;
    ++place->second.rules;
    FilterRule read = Decoder(Words(words).subspan(2)).decode(places_);
    if (read.verdict == FilterVerdict::none && read.target.empty()) return;
    read.packets = packets;
    read.number = place->second.rules;
    read.text = filter_rule_text(line);
    add_filter_rule(chains_[place->second.chain], std::move(read), left_);
  }

  FilterTool tool_;
  std::string_view family_;
  std::string_view table_;
  std::map<std::string, Place, std::less<>> places_;
  std::size_t left_ = kMostRulesRead;
  std::vector<FilterChain> chains_;
};

}  // namespace

std::vector<FilterChain> parse_iptables_save(std::string_view text,
                                             FilterTool tool,
                                             std::string_view family) {
  return Reader(tool, family).read(text);
}

}  // namespace distdoctor::collect
