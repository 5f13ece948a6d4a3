#include "machine/maps.h"

#include "base/text.h"

#include <set>

namespace distdoctor::machine {

std::vector<std::string> mapped_files(std::string_view maps) {
  std::vector<std::string> paths;
  std::set<std::string_view> seen;
  for (const auto line : split_lines(maps)) {
    const auto at = line.find('/');
    if (at == std::string_view::npos || line.ends_with(" (deleted)")) continue;
    if (seen.insert(line.substr(at)).second) paths.emplace_back(line.substr(at));
  }
  return paths;
}

}  // namespace distdoctor::machine
