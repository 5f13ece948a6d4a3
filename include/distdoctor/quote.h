// The one way in which a name that a machine, a log or a user gave enters a printed command.
#pragma once

#include <string>
#include <string_view>

namespace distdoctor {

// zsh takes "=eth0" for the path of a program, at the begin of a word, in what is assigned, and
// there behind each colon (zshexpn(1), filename expansion).
inline bool has_path_lookup(std::string_view word) {
  return word.starts_with('=') || word.find("==") != std::string_view::npos ||
         word.find(":=") != std::string_view::npos;
}

// A word for a POSIX shell, or zsh: as it is when harmless, else in single quotes. Control
// characters would reach a terminal, so they become '?': such a command is for reading, not for
// running.
inline std::string shell_quote(std::string_view word) {
  constexpr std::string_view kHarmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-^";
  if (!word.empty() && word.find_first_not_of(kHarmless) == std::string_view::npos &&
      !has_path_lookup(word)) {
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
