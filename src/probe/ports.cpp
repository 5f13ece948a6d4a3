#include "probe/ports.h"

#include "base/text.h"

#include <algorithm>

namespace distdoctor::probe {

PortRange parse_port_range(std::string_view text) {
  constexpr PortRange kDefault = {32768, 60999};  // net/ipv4/af_inet.c
  const auto words = split_words(text);
  if (words.size() != 2) return kDefault;
  const auto low = parse_int_within<std::uint16_t>(words[0], 1, 65535);
  const auto high = parse_int_within<std::uint16_t>(words[1], 1, 65535);
  if (!low || !high || *low > *high) return kDefault;
  return {*low, *high};
}

std::vector<std::uint16_t> spread_ports(PortRange range, int count) {
  const auto [low, high] = range;
  const int ports = std::min(count, high - low + 1);
  std::vector<std::uint16_t> spread;
  for (int i = 0; i < ports; ++i) {
    const int offset = ports == 1 ? 0 : (high - low) * i / (ports - 1);
    spread.push_back(static_cast<std::uint16_t>(low + offset));
  }
  return spread;
}

std::optional<PortRange> outside_of(PortRange range) {
  constexpr int kRoom = 64;
  constexpr std::uint16_t kLowest = 1024;
  if (range.first >= kLowest + kRoom) {
    return PortRange{kLowest, static_cast<std::uint16_t>(range.first - 1)};
  }
  if (range.second <= 65535 - kRoom) {
    return PortRange{static_cast<std::uint16_t>(range.second + 1), std::uint16_t{65535}};
  }
  return std::nullopt;
}

std::uint16_t nearest_free(std::uint16_t wanted,
                           PortRange range,
                           int tries,
                           const std::function<bool(std::uint16_t)>& take) {
  for (int distance = 0; tries > 0 && distance <= 65535; ++distance) {
    for (const int port : {wanted + distance, wanted - distance}) {
      if (port < range.first || port > range.second || (distance == 0 && port != wanted)) continue;
      if (tries-- <= 0) return 0;
      if (take(static_cast<std::uint16_t>(port))) return static_cast<std::uint16_t>(port);
      if (distance == 0) break;
    }
  }
  return 0;
}

}  // namespace distdoctor::probe
