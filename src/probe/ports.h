// Which ports a listening set takes; pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::probe {

using PortRange = std::pair<std::uint16_t, std::uint16_t>;  // both ends included

// The text of /proc/sys/net/ipv4/ip_local_port_range; the kernel's default where it makes no sense.
PortRange parse_port_range(std::string_view text);

// `count` ports over the range, its two ends among them, at even distances. Fewer where the range
// is smaller. In rising order.
std::vector<std::uint16_t> spread_ports(PortRange range, int count);

// The unprivileged ports below the range, or above it; nothing where it leaves no room for 64.
std::optional<PortRange> outside_of(PortRange range);

// `wanted`, or the free port nearest to it inside the range; 0 where `take` refuses all of the
// `tries` nearest. `take` returns whether it could have the port.
std::uint16_t nearest_free(std::uint16_t wanted,
                           PortRange range,
                           int tries,
                           const std::function<bool(std::uint16_t)>& take);

}  // namespace distdoctor::probe
