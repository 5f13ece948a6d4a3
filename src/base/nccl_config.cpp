#include "base/nccl_config.h"

#include "base/text.h"

#include <cstddef>
#include <optional>
#include <set>

namespace distdoctor {

namespace {

constexpr std::size_t kLongest = 1023;  // of a name and of a value; the rest is cut

std::optional<NcclConfigLine> parse_line(std::string_view text, int number) {
  if (text.starts_with('#')) return std::nullopt;
  text = text.substr(0, text.find('\0'));  // it is a C string to NCCL
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  return NcclConfigLine{.name = std::string(text.substr(0, equals).substr(0, kLongest)),
                        .value = std::string(text.substr(equals + 1).substr(0, kLongest)),
                        .line = number};
}

}  // namespace

std::vector<NcclConfigLine> nccl_config_lines(std::string_view text) {
  std::vector<NcclConfigLine> lines;
  int number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    if (auto line = parse_line(raw, ++number)) lines.push_back(*std::move(line));
  }
  return lines;
}

std::vector<NcclConfigLine> parse_nccl_config(std::string_view text) {
  std::vector<NcclConfigLine> lines = nccl_config_lines(text);
  std::set<std::string, std::less<>> seen;
  std::erase_if(lines, [&](const NcclConfigLine& line) { return !seen.insert(line.name).second; });
  return lines;
}

}  // namespace distdoctor
