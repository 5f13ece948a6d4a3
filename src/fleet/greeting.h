// The agent's first line, and what shells print before it: motd, .bashrc, module load.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::fleet {

inline constexpr std::size_t kMaxNoise = std::size_t{64} << 10;
inline constexpr std::size_t kNonceDigits = 32;  // hexadecimal

std::string greeting(std::string_view nonce);  // "distdoctor-agent/1 NONCE\n"
// The line by which the launched script asks for the program itself (launch.h).
inline constexpr std::string_view kPushLine = "distdoctor-push/1\n";

struct Greeting {
  std::string_view noise;       // what came before it
  std::string_view nonce = {};  // empty: it was kPushLine
  std::size_t end = 0;          // frames begin here
};

// Looks for it in all that was received so far. Nothing: read on. An Error: another protocol's
// version, or more than kMaxNoise without one.
Result<std::optional<Greeting>> find_greeting(std::string_view received);

// Noise as evidence: one printable line of at most `limit` bytes.
std::string in_one_line(std::string_view text, std::size_t limit);

}  // namespace distdoctor::fleet
