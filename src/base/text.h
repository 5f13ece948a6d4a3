// Text: cutting, joining, numbers with their range, and what may reach a terminal.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace distdoctor {

// Views into `text`. "a,,b" has three parts, "" has one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);
// At most `limit` parts (>= 1); the last one holds the rest.
std::vector<std::string_view> split(std::string_view text, char separator, std::size_t limit);
// Words between runs of blanks; no empty ones.
std::vector<std::string_view> split_words(std::string_view text);
// Without "\n" or "\r\n"; no empty last line for a text that ends in one.
std::vector<std::string_view> split_lines(std::string_view text);

std::string_view trim(std::string_view text);
// What follows the prefix, or nothing where it does not begin so.
std::optional<std::string_view> after_prefix(std::string_view text, std::string_view prefix);
std::optional<std::string_view> before_suffix(std::string_view text, std::string_view suffix);
std::string to_lower(std::string_view text);  // ASCII only

// The whole text must be a number that a T can hold: no blanks, no plus sign, no "0x".
template <std::integral T>
std::optional<T> parse_int(std::string_view text, int base = 10) {
  T value{};
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, value, base);
  if (error != std::errc{} || stopped != end || text.empty()) return std::nullopt;
  return value;
}

// As above, and between both bounds (inclusive).
template <std::integral T>
std::optional<T> parse_int_within(std::string_view text, T lowest, T highest) {
  const std::optional<T> value = parse_int<T>(text);
  if (!value || *value < lowest || *value > highest) return std::nullopt;
  return value;
}

// Finite decimal numbers only.
std::optional<double> parse_double(std::string_view text);

template <class Range>
std::string join(const Range& parts, std::string_view separator) {
  std::string joined;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) joined += separator;
    joined += part;
    first = false;
  }
  return joined;
}

// What a machine, a log or a user named, safe for one line of a terminal: control characters,
// broken UTF-8 and the marks that turn the writing direction become visible escapes such as \x1b or
// \u202e.
std::string printable(std::string_view text);

// At most `limit` bytes and no half characters; "..." ends a text that was cut.
std::string shortened(std::string_view text, std::size_t limit);

}  // namespace distdoctor
