// Which lengths of packets a filter's rule asks for, read from its own words: neither tool's match
// by length is among the conditions that are followed.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace distdoctor::checks {

// Bytes of the IP packet, both included.
struct Lengths {
  int from = 0;
  int to = 65'535;
};

// Without what stands in quotes: comments and prefixes of logs.
inline std::string without_quoted(std::string_view text) {
  std::string kept;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted) kept += c;
  }
  return kept;
}

inline std::optional<int> length_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 ? std::optional(value) : std::nullopt;
}

// "1000:65535", "1000:", ":200", "40"; nft's with '-'.
inline std::optional<Lengths> length_range(std::string_view text, char between) {
  const auto at = text.find(between);
  if (at == std::string_view::npos) {
    const auto one = length_number(text);
    return one ? std::optional(Lengths{*one, *one}) : std::nullopt;
  }
  const auto first = text.substr(0, at);
  const auto last = text.substr(at + 1);
  const auto from = first.empty() ? std::optional(0) : length_number(first);
  const auto to = last.empty() ? std::optional(65'535) : length_number(last);
  return from && to ? std::optional(Lengths{*from, *to}) : std::nullopt;
}

inline std::vector<std::string_view> length_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// nft: "> 1400", "1000-2000", "== 40".
inline std::optional<Lengths> compared_length(std::string_view first, std::string_view second) {
  const auto number = length_number(second);
  if (first == ">") return number ? std::optional(Lengths{*number + 1}) : std::nullopt;
  if (first == ">=") return number ? std::optional(Lengths{*number}) : std::nullopt;
  if (first == "<") return number ? std::optional(Lengths{0, *number - 1}) : std::nullopt;
  if (first == "<=") return number ? std::optional(Lengths{0, *number}) : std::nullopt;
  return length_range(first == "==" ? second : first, '-');
}

// Of "-m length --length 2000:65535" (man 8 iptables-extensions), "meta length > 1400" and "ip
// length 1000-2000" (man 8 nft). None: it asks for none, or by a set or a negation.
inline std::optional<Lengths> lengths_of(std::string_view rule) {
  const std::string text = without_quoted(rule);
  const auto words = length_words(text);
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] == "--length") {
      return words[i - 1] == "!" ? std::nullopt : length_range(words[i + 1], ':');
    }
    const bool nft = words[i - 1] == "meta" || words[i - 1] == "ip" || words[i - 1] == "ip6";
    if (nft && words[i] == "length") {
      return compared_length(words[i + 1], i + 2 < words.size() ? words[i + 2] : "");
    }
  }
  return std::nullopt;
}

}  // namespace distdoctor::checks
