#include "collect/kernel_log.h"

#include "base/text.h"
#include "collect/collectors.h"
#include "machine/kernel_lines.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

namespace distdoctor::collect {
namespace {

constexpr std::size_t kMostText = 400;  // bytes of a line

// The text between brackets at the front, which is taken off; none without one.
std::optional<std::string_view> take_bracket(std::string_view& text) {
  const auto end = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  if (end == std::string_view::npos) return std::nullopt;
  const auto inside = trim(text.substr(1, end - 1));
  text.remove_prefix(end + 1);
  return inside;
}

bool is_caller(std::string_view text) {  // "T123", "C0"
  return text.size() > 1 && (text[0] == 'T' || text[0] == 'C') && parse_int<int>(text.substr(1));
}

double oldest(const std::vector<std::string_view>& lines) {
  for (const auto line : lines) {
    if (const auto parsed = parse_kernel_line(line)) return parsed->uptime_s;
  }
  return 0;
}

}  // namespace

std::optional<KernelLine> parse_kernel_line(std::string_view line) {
  const auto level = line.starts_with('<') ? line.find('>') : std::string_view::npos;
  if (level == std::string_view::npos || !parse_int<int>(line.substr(1, level - 1))) {
    return std::nullopt;
  }
  auto text = line.substr(level + 1);
  KernelLine parsed;
  auto rest = text;
  const auto stamp = take_bracket(rest);
  const auto seconds = stamp ? parse_double(*stamp) : std::nullopt;
  if (seconds && *seconds >= 0) {
    parsed.uptime_s = *seconds;
    text = rest;
    const auto caller = take_bracket(rest);
    if (caller && is_caller(*caller)) text = rest;
  }
  parsed.text = shortened(trim(text), kMostText);
  return parsed;
}

KernelLog parse_kernel_log(std::string_view text, double now_s) {
  const auto lines = split_lines(text);
  KernelLog log{.oldest_s = oldest(lines), .now_s = now_s};
  std::array<int, machine::kKernelLineKinds> kept{};
  for (const auto line : lines | std::views::reverse) {
    const auto kind = machine::kernel_line_kind(line);
    if (!kind) continue;
    auto& count = kept.at(*kind);
    auto parsed = count < kMostOfAKind ? parse_kernel_line(line) : std::nullopt;
    if (!parsed) continue;
    log.lines.push_back(*std::move(parsed));
    ++count;
  }
  std::ranges::reverse(log.lines);
  return log;
}

void collect_kernel_log(machine::Machine& machine,
                        const CollectRequest& /*request*/,
                        NodeFacts& node) {
  const auto text = machine.kernel_log();
  if (!text) {
    node.kernel_log = unknown_because(text.error());
    return;
  }
  node.kernel_log = parse_kernel_log(*text, machine.self().uptime_s);
}

}  // namespace distdoctor::collect
