// The one way in which a name that a machine, a log or a user gave enters a printed command.
#pragma once

#include <string>
#include <string_view>

namespace distdoctor {

// A word for a POSIX shell: as it is when harmless, else in single quotes. Control characters
// would reach a terminal, so they become '?': such a command is for reading, not for running.
inline std::string shell_quote(std::string_view word) {
  constexpr std::string_view kHarmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-^";
  if (!word.empty() && word.find_first_not_of(kHarmless) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return quoted + "'";
}

}  // namespace distdoctor
