#include "render/style.h"

#include "base/text.h"

#include <algorithm>

namespace distdoctor::render {
namespace {

std::string_view colour_of(CheckResult result) {
  switch (result) {
    case CheckResult::pass:
      return "32";
    case CheckResult::notice:
      return "36";
    case CheckResult::degraded:
      return "33";
    case CheckResult::blocker:
      return "1;31";
    case CheckResult::unknown:
      return "35";
    case CheckResult::skipped:
      return "2";
  }
  return "0";
}

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }));
}

}  // namespace

std::string Style::paint(std::string_view code, std::string_view text) const {
  if (!options_.colour) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string Style::by_result(CheckResult result, std::string_view text) const {
  return paint(colour_of(result), text);
}

std::string Style::symbol(CheckResult result) const {
  std::string_view utf8;
  std::string_view ascii;
  switch (result) {
    case CheckResult::pass:
      utf8 = "✓", ascii = "ok";
      break;
    case CheckResult::notice:
      utf8 = "·", ascii = "i";
      break;
    case CheckResult::degraded:
      utf8 = "!", ascii = "!";
      break;
    case CheckResult::blocker:
      utf8 = "✗", ascii = "X";
      break;
    case CheckResult::unknown:
      utf8 = "?", ascii = "?";
      break;
    case CheckResult::skipped:
      utf8 = "-", ascii = "-";
      break;
  }
  return by_result(result, options_.utf8 ? utf8 : ascii);
}

CheckResult as_result(Severity severity) {
  switch (severity) {
    case Severity::notice:
      return CheckResult::notice;
    case Severity::degraded:
      return CheckResult::degraded;
    case Severity::blocker:
      return CheckResult::blocker;
  }
  return CheckResult::unknown;
}

std::string wrapped(std::string_view text, std::size_t indent, int width) {
  const std::size_t room = std::max<std::size_t>(
      20, static_cast<std::size_t>(std::max(width, 0)) - std::min(indent, std::size_t{40}));
  std::string out;
  std::size_t used = 0;
  for (const std::string_view word : split_words(text)) {
    if (used != 0 && used + 1 + columns(word) > room) {
      out += '\n';
      used = 0;
    }
    out += used == 0 ? std::string(indent, ' ') : " ";
    out += word;
    used += columns(word) + (used == 0 ? 0 : 1);
  }
  return out + "\n";
}

}  // namespace distdoctor::render
