// The flags of a launcher's command line, up to the first word that is none.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::rules {

// Which flags take the next word. Names are written without dashes in front, '_' for '-' within:
// "nproc_per_node". A flag that is in no list takes none, but `--flag=value` is always read.
struct FlagTable {
  std::string_view one;            // names of flags with one value, between blanks
  std::string_view two = {};       // `--mca KEY VALUE`: given as "KEY=VALUE"
  std::string_view prefixes = {};  // any flag that begins so takes one value
  std::string_view glued = {};     // letters whose value may follow at once: -N2
};

struct Flags {
  std::vector<std::pair<std::string, std::string>> given = {};  // in order
  std::size_t rest = 0;  // index in argv of the first word that is no flag

  // The last one of these names wins, as in getopt and argparse.
  [[nodiscard]] const std::string* find(std::string_view name, std::string_view alias = {}) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
};

// argv[0] is the program.
Flags read_flags(std::span<const std::string> argv, const FlagTable& table);

}  // namespace distdoctor::rules
