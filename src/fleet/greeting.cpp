#include "fleet/greeting.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace distdoctor::fleet {
namespace {

constexpr std::string_view kAttempt = "wait for the agent's greeting";
constexpr std::string_view kAnyVersion = "distdoctor-agent/";
constexpr std::string_view kOurs = "distdoctor-agent/1 ";

bool is_nonce(std::string_view text) {
  return text.size() == kNonceDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<Greeting> find_push(std::string_view received) {
  const auto at = received.find(kPushLine);
  if (at == std::string_view::npos) return std::nullopt;
  return Greeting{.noise = received.substr(0, at), .end = at + kPushLine.size()};
}

}  // namespace

std::string greeting(std::string_view nonce) {
  return fmt::format("{}{}\n", kOurs, nonce);
}

// Anywhere, not only where a line begins: a prompt may stand before it.
Result<std::optional<Greeting>> find_greeting(std::string_view received) {
  for (auto at = received.find(kAnyVersion); at != std::string_view::npos;
       at = received.find(kAnyVersion, at + 1)) {
    const auto end = received.find('\n', at);
    if (end == std::string_view::npos) break;
    const auto line = received.substr(at, end - at);
    const auto nonce = after_prefix(line, kOurs);
    if (nonce && is_nonce(*nonce)) return Greeting{received.substr(0, at), *nonce, end + 1};
    const auto words = split_words(line);
    if (words.size() == 2 && is_nonce(words[1])) {
      return failure(kAttempt, fmt::format("it speaks {}, we speak {}", in_one_line(words[0], 40),
                                           trim(kOurs)));
    }
  }
  if (auto push = find_push(received)) return push;
  if (received.size() <= kMaxNoise) return std::nullopt;
  return failure(kAttempt, fmt::format("more than {} bytes of something else: {}", kMaxNoise,
                                       in_one_line(received, 200)));
}

std::string in_one_line(std::string_view text, std::size_t limit) {
  std::string line;
  for (const std::string_view part : split_lines(text)) {
    if (trim(part).empty()) continue;
    if (!line.empty()) line += "; ";
    line += trim(part);
    if (line.size() > limit) break;
  }
  return shortened(printable(line), limit);
}

}  // namespace distdoctor::fleet
