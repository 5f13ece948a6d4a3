#include "base/text.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>

namespace distdoctor {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";

// Line and paragraph separators, and what reorders or hides text (UAX #9).
bool deceives(char32_t point) {
  return (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2060 && point <= 0x2069) || point == 0x061c || point == 0xfeff;
}

void append_control(std::string& out, char32_t point) {
  switch (point) {
    case U'\n':
      out += "\\n";
      return;
    case U'\r':
      out += "\\r";
      return;
    case U'\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<std::uint32_t>(point));
  }
}

void append_printable(std::string& out, std::string_view bytes, char32_t point) {
  if (point < 0x20 || (point >= 0x7f && point < 0xa0)) {
    append_control(out, point);
  } else if (deceives(point)) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(point));
  } else {
    out += bytes;
  }
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  return split(text, separator, std::string_view::npos);
}

std::vector<std::string_view> split(std::string_view text, char separator, std::size_t limit) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < limit) {
    const std::size_t at = text.find(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::optional<std::string_view> after_prefix(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

std::optional<std::string_view> before_suffix(std::string_view text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return std::nullopt;
  return text.substr(0, text.size() - suffix.size());
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stopped != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const DecodedPoint next = decode_utf8(text);
    if (next.bytes == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}",
                     static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    append_printable(out, text.substr(0, next.bytes), next.point);
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t limit) {
  constexpr std::string_view kDots = "...";
  if (text.size() <= limit) return std::string(text);
  std::size_t keep = limit > kDots.size() ? limit - kDots.size() : 0;
  while (keep > 0 && (static_cast<unsigned char>(text[keep]) & 0xc0U) == 0x80U) --keep;
  return std::string(text.substr(0, keep)).append(kDots.substr(0, std::min(limit, kDots.size())));
}

}  // namespace distdoctor
