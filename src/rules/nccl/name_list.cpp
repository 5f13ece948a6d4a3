#include "rules/nccl/name_list.h"

#include "base/text.h"

#include <algorithm>
#include <limits>

namespace distdoctor::rules {

namespace {

constexpr std::size_t kLongestName = 63;

// atoi(3): blanks, a sign, digits, and whatever follows is ignored.
int leading_int(std::string_view text) {
  const auto start = std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size());
  text.remove_prefix(start);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  long value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    value = std::min<long>(value * 10 + (c - '0'), std::numeric_limits<int>::max());
  }
  return static_cast<int>(negative ? -value : value);
}

bool matches(std::string_view name, int port, const NameElement& element, bool exact) {
  const bool named = exact ? name == element.name : name.starts_with(element.name);
  return named && (port == kAnyPort || element.port == kAnyPort || port == element.port);
}

}  // namespace

bool NameList::takes(std::string_view name, int port) const {
  const bool listed =
      elements.empty() || std::ranges::any_of(elements, [&](const NameElement& element) {
        return matches(name, port, element, exact);
      });
  return listed != exclude;
}

std::vector<NameElement> parse_name_elements(std::string_view text, std::size_t most) {
  std::vector<NameElement> elements;
  for (const std::string_view element : split(text, ',')) {
    if (elements.size() == most) break;
    const auto colon = element.find(':');
    const std::string_view name = element.substr(0, colon);
    if (name.empty()) continue;
    elements.push_back({.name = std::string(name.substr(0, kLongestName))});
    if (colon != std::string_view::npos) {
      elements.back().port = leading_int(element.substr(colon + 1));
    }
  }
  return elements;
}

NameList parse_name_list(std::string_view text, std::size_t most) {
  NameList list;
  list.exclude = text.starts_with('^');
  if (list.exclude) text.remove_prefix(1);
  list.exact = text.starts_with('=');
  if (list.exact) text.remove_prefix(1);
  list.elements = parse_name_elements(text, most);
  return list;
}

}  // namespace distdoctor::rules
