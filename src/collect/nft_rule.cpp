#include "collect/nft_rule.h"

#include <distdoctor/filter_condition.h>

#include "base/text.h"
#include "collect/nft_keys.h"

#include <algorithm>
#include <array>

namespace distdoctor::collect {
namespace {

using Words = std::span<const FilterWord>;

// --- statements ---

struct Ending {
  std::string_view word;
  FilterVerdict verdict;
};
constexpr std::array kEndings = {
    Ending{"accept", FilterVerdict::accept},
    Ending{"drop", FilterVerdict::drop},
    Ending{"reject", FilterVerdict::reject},
    Ending{"return", FilterVerdict::back},
    Ending{"continue", FilterVerdict::none},
    Ending{"jump", FilterVerdict::jump},
    Ending{"goto", FilterVerdict::go},
    Ending{"masquerade", FilterVerdict::accept},  // of the source only: it goes where it went
    Ending{"snat", FilterVerdict::accept},
    Ending{"dnat", FilterVerdict::other},
    Ending{"redirect", FilterVerdict::other},
    Ending{"queue", FilterVerdict::other},
    Ending{"notrack", FilterVerdict::other},
    Ending{"tproxy", FilterVerdict::other},
    Ending{"fwd", FilterVerdict::other},
    Ending{"synproxy", FilterVerdict::other},
};

std::optional<FilterVerdict> ending(const FilterWord& word) {
  if (word.quoted) return std::nullopt;
  const auto found = std::ranges::find(kEndings, word.text, &Ending::word);
  return found == kEndings.end() ? std::nullopt : std::optional(found->verdict);
}

bool is(const FilterWord& word, std::string_view text) {
  return !word.quoted && word.text == text;
}

bool begins_statement(const FilterWord& word) {
  return ending(word) || is(word, "counter") || is(word, "log") || is(word, "comment");
}

NftVerdict verdict_of(Words words) {
  const auto verdict = words.empty() ? std::nullopt : ending(words[0]);
  if (!verdict) return {};
  const bool leads_on = *verdict == FilterVerdict::jump || *verdict == FilterVerdict::go;
  if (!leads_on) return {.verdict = *verdict};
  if (words.size() < 2 || is(words[1], "{")) return {};  // a chain without a name
  return {.verdict = *verdict, .target = std::string(words[1].text)};
}

// --- one rule ---

class Decoder {
 public:
  Decoder(const NftRuleText& rule, Words words, const NftSets& sets, std::size_t& written)
      : family_(rule.family), words_(words), sets_(sets), written_(written) {
    rule_.number = rule.handle;
    rule_.text = filter_rule_text(rule.text);
  }

  std::vector<FilterRule> decode() {
    while (!words_.empty()) {
      if (!statement() && !condition()) unknown();
    }
    return std::move(rules_);
  }

 private:
  [[nodiscard]] bool next_is(std::string_view text) const {
    return !words_.empty() && is(words_[0], text);
  }
  void skip(std::size_t count = 1) { words_ = words_.subspan(std::min(count, words_.size())); }
  bool take(std::string_view text) {
    if (!next_is(text)) return false;
    skip();
    return true;
  }
  void emit(NftVerdict verdict) {
    if (verdict.verdict == FilterVerdict::none && verdict.target.empty()) return;
    FilterRule& rule = rules_.emplace_back(rule_);
    rule.verdict = verdict.verdict;
    rule.target = std::move(verdict.target);
  }
  void end(NftVerdict verdict) {
    emit(std::move(verdict));
    words_ = {};
  }
  void add(FilterCondition condition) {
    if (std::ranges::find(rule_.conditions, condition) == rule_.conditions.end()) {
      rule_.conditions.push_back(std::move(condition));
    }
  }
  void emit_mark() { emit({.verdict = FilterVerdict::none, .target = std::string(kSetsMark)}); }
  void add_other() { add({.field = FilterField::other}); }

  bool statement() {
    if (ending(words_[0])) {
      end(verdict_of(words_));
      return true;
    }
    if (take("counter")) return counter(), true;
    if (take("log")) return skip_to_statement(), true;
    if (take("comment")) return skip(), true;
    if (take("limit")) return limit(), true;
    if (words_.size() >= 4 && is(words_[2], "set") && (next_is("ct") || next_is("meta"))) {
      return setting(), true;
    }
    return false;
  }
  // "meta mark set 0x1", "ct mark set mark or 0x10": what follows a longer value is lost with it.
  void setting() {
    if (next_is("meta") && is(words_[1], "mark")) emit_mark();
    skip(3);
    const bool simple = words_[0].quoted || parse_int<int>(words_[0].text.substr(0, 1));
    if (simple) return skip();
    skip_to_statement();
    add_other();
  }
  // "packets N bytes N", or the name of one that stands outside the rule.
  void counter() {
    if (take("name")) return skip();
    if (!take("packets") || words_.empty()) return;
    rule_.packets = parse_int<std::int64_t>(words_[0].text);
    skip();
    if (take("bytes")) skip();
  }
  // "rate [over] N/second [burst N packets]", or the name of one.
  void limit() {
    add({.field = FilterField::limit});
    const bool named = take("name");
    if (!named) take("rate");
    take("over");
    skip();
    if (next_is("mbytes/second") || next_is("kbytes/second") || next_is("bytes/second")) skip();
    if (take("burst")) skip(2);
  }

  // A pair of braces is one thing.
  void skip_one() {
    int depth = 0;
    do {
      if (next_is("{")) ++depth;
      if (next_is("}")) --depth;
      skip();
    } while (depth > 0 && !words_.empty());
  }
  void skip_to_statement() {
    while (!words_.empty() && !begins_statement(words_[0])) skip_one();
  }
  // Something that is not decoded, up to the next word that surely begins a statement.
  void unknown() {
    const Words from = words_;
    skip_to_statement();
    const Words passed = from.first(from.size() - words_.size());
    if (passed.empty()) return skip();
    const auto passed_by = [&](std::string_view text) {
      return std::ranges::any_of(passed, [&](const FilterWord& word) { return is(word, text); });
    };
    add_other();
    if (passed_by("vmap") || (passed_by("set") && changes_the_way(passed))) {
      emit({.verdict = FilterVerdict::other});
    } else if (passed_by("set")) {
      emit_mark();
    }
  }
  static bool changes_the_way(Words words) {
    constexpr std::array<std::string_view, 4> kEnds = {"saddr", "daddr", "sport", "dport"};
    return words.size() > 1 && std::ranges::find(kEnds, words[1].text) != kEnds.end();
  }

  [[nodiscard]] const NftKey* key() const {
    for (const NftKey& known : kNftKeys) {
      const auto parts = split(known.text, ' ');
      if (parts.size() <= words_.size() &&
          std::ranges::equal(
              parts, words_.first(parts.size()),
              [](std::string_view part, const FilterWord& word) { return is(word, part); })) {
        return &known;
      }
    }
    return nullptr;
  }
  void imply(const NftKey& known) {
    const bool said = family_ == "ip" || family_ == "ip6";
    if (!known.family.empty() && !said) {
      add({.field = FilterField::family, .values = {std::string(known.family)}});
    }
    if (!known.protocol.empty()) {
      add({.field = FilterField::protocol, .values = {std::string(known.protocol)}});
    }
  }

  // What the word after the key says of it.
  [[nodiscard]] bool plain(std::size_t length) const {
    if (words_.size() <= length) return false;
    const FilterWord& next = words_[length];
    constexpr std::array<std::string_view, 5> kNot = {".", "set", "map", "<<", ">>"};
    return next.quoted || std::ranges::find(kNot, next.text) == kNot.end();
  }
  bool condition() {
    const NftKey* known = key();
    if (known == nullptr) return false;
    const auto length = split(known->text, ' ').size();
    imply(*known);
    const bool decoded = known->field != FilterField::other || !known->named.empty();
    if (!decoded || !plain(length)) return false;
    skip(length);
    values_of(*known);
    return true;
  }

  static FilterCondition begun(const NftKey& known) {
    FilterCondition condition{.field = known.field};
    if (!known.named.empty()) condition.values.emplace_back(known.named);
    return condition;
  }
  void values_of(const NftKey& known) {
    if (take("vmap")) return verdict_map(known);
    FilterCondition condition = begun(known);
    if (known.named == kTcpFlags) return flags(std::move(condition));
    if (next_is("&") || next_is("and")) return masked(std::move(condition));
    condition.negated = take("!=") || take("!");
    if (!condition.negated) take("==");
    if (const auto range = compared(); !range.empty()) {
      condition.values.push_back(range);
      skip(2);
      return add(std::move(condition));
    }
    if (!fill(condition)) return add_other();
    add(std::move(condition));
  }
  // "> 1023" as a range of ports; empty where nothing is compared so.
  [[nodiscard]] std::string compared() const {
    if (words_.size() < 2 || words_[0].quoted) return {};
    const std::string_view sign = words_[0].text;
    const auto bound = parse_int_within<int>(words_[1].text, 0, 65535);
    if (!bound) return {};
    if (sign == "<") return "0-" + std::to_string(*bound - 1);
    if (sign == "<=") return "0-" + std::to_string(*bound);
    if (sign == ">") return std::to_string(*bound + 1) + "-65535";
    if (sign == ">=") return std::to_string(*bound) + "-65535";
    return {};
  }
  // "@name", "{ a, b }", "a,b", "a".
  bool fill(FilterCondition& condition) {
    if (words_.empty()) return false;
    if (!words_[0].quoted && words_[0].text.starts_with("@")) {
      const auto found = sets_.find(words_[0].text.substr(1));
      skip();
      return found != sets_.end() && fill_from(found->second, condition);
    }
    if (next_is("{")) return fill_from(braces(), condition);
    do {
      const bool status = condition.field == FilterField::state;  // "ct status dnat"
      if (words_.empty() || (!status && begins_statement(words_[0]))) return false;
      if (!words_[0].quoted && words_[0].text.find_first_of("<>&^") != std::string_view::npos) {
        return false;
      }
      condition.values.push_back(value_of(condition, words_[0].text));
      skip();
    } while (take(",") || take("|"));
    return true;
  }
  bool fill_from(const NftSet& set, FilterCondition& condition) {
    written_ += set.elements.size();
    if (!set.simple || written_ > kMostSetsWritten) return false;
    for (const auto& [value, verdict] : set.elements) {
      condition.values.push_back(value_of(condition, value));
    }
    return true;
  }
  NftSet braces() {
    const Words from = words_;
    skip_one();
    return parse_nft_elements(from.subspan(1, from.size() - words_.size() - 1));
  }
  static bool of_mark(const FilterCondition& condition) {
    return condition.field == FilterField::other && !condition.values.empty() &&
           condition.values.front() == kMark;
  }
  static std::string value_of(const FilterCondition& condition, std::string_view value) {
    if (condition.field == FilterField::family) {
      return std::string(value == "ipv4" ? "ip" : value == "ipv6" ? "ip6" : value);
    }
    if (of_mark(condition) && value.find('/') == std::string_view::npos) {
      return std::string(value) + "/0xffffffff";
    }
    return std::string(value);
  }

  // "mark & 0x10 == 0x10"; of anything else masked nothing is known.
  void masked(FilterCondition condition) {
    const bool decoded =
        of_mark(condition) && words_.size() >= 4 && (is(words_[2], "==") || is(words_[2], "!="));
    if (!decoded) {
      add_other();
      return skip_to_statement();
    }
    condition.negated = is(words_[2], "!=");
    condition.values.push_back(std::string(words_[3].text) + "/" + std::string(words_[1].text));
    skip(4);
    add(std::move(condition));
  }

  // "fin,syn", "(fin|syn)".
  std::string flag_list() {
    std::string list;
    take("(");
    do {
      if (words_.empty()) break;
      list += (list.empty() ? "" : ",") + std::string(words_[0].text);
      skip();
    } while (take(",") || take("|"));
    take(")");
    return list;
  }
  // "syn / fin,syn", "& (fin|syn) == syn", "== syn", "syn": any of these.
  void flags(FilterCondition condition) {
    constexpr std::string_view kAll = "fin,syn,rst,psh,ack,urg,ecn,cwr";
    if (take("&")) {
      const std::string mask = flag_list();
      condition.negated = take("!=");
      if (!condition.negated) take("==");
      condition.values.push_back(mask + "/" + flag_list());
      return add(std::move(condition));
    }
    const bool exact = take("==");
    condition.negated = take("!=") || take("!");
    const std::string list = flag_list();
    if (take("/")) {
      condition.values.push_back(flag_list() + "/" + list);
    } else if (exact) {
      condition.values.push_back(std::string(kAll) + "/" + list);
    } else {
      for (const auto flag : split(list, ',')) {
        condition.values.push_back(std::string(flag) + "/" + std::string(flag));
      }
    }
    add(std::move(condition));
  }

  // No two elements fit one packet, so that each may be a rule of its own.
  void verdict_map(const NftKey& known) {
    NftSet map{.simple = false};
    if (next_is("{")) {
      map = braces();
    } else if (!words_.empty() && words_[0].text.starts_with("@")) {
      const auto found = sets_.find(words_[0].text.substr(1));
      if (found != sets_.end()) map = found->second;
    }
    const bool any =
        std::ranges::any_of(map.elements, [](const auto& element) { return element.first == "*"; });
    written_ += map.elements.size();
    if (!map.simple || any || written_ > kMostSetsWritten) {
      return end({.verdict = FilterVerdict::other});
    }
    const auto conditions = rule_.conditions;
    for (const auto& [value, verdict] : map.elements) {
      rule_.conditions = conditions;
      FilterCondition condition = begun(known);
      condition.values.push_back(value_of(condition, value));
      add(std::move(condition));
      emit(verdict);
    }
    words_ = {};
  }

  std::string_view family_;
  Words words_;
  const NftSets& sets_;
  std::size_t& written_;
  FilterRule rule_;
  std::vector<FilterRule> rules_;
};

}  // namespace

NftSet parse_nft_elements(std::span<const FilterWord> words) {
  NftSet set;
  while (!words.empty()) {
    const auto comma = std::ranges::find_if(words, [](const auto& w) { return is(w, ","); });
    const auto element = words.first(static_cast<std::size_t>(comma - words.begin()));
    words = words.subspan(std::min(words.size(), element.size() + 1));
    if (element.empty() || is(element[0], "}")) continue;
    if (element.size() > 1 && is(element[1], ".")) set.simple = false;
    if (set.elements.size() == kMostSetElements) set.simple = false;
    if (!set.simple) break;
    const auto colon = std::ranges::find_if(element, [](const auto& w) { return is(w, ":"); });
    const auto after = element.subspan(static_cast<std::size_t>(colon - element.begin()));
    set.elements.emplace_back(element[0].text,
                              verdict_of(after.subspan(std::min<std::size_t>(1, after.size()))));
  }
  if (!set.simple) set.elements.clear();
  return set;
}

std::vector<FilterRule> parse_nft_rule(const NftRuleText& rule,
                                       const NftSets& sets,
                                       std::size_t& written) {
  const auto words = filter_words(rule.text, kNftSyntax);
  return Decoder(rule, words, sets, written).decode();
}

}  // namespace distdoctor::collect
