// Whether the packet filter of a node ends what an RDMA port sends, and the rule that mends it.
// Only Soft-RoCE passes there as UDP: Soft-iWARP is TCP.
#pragma once

#include <distdoctor/filters.h>
#include <distdoctor/firewall_fix.h>

#include "rdma_paths.h"

#include <optional>
#include <vector>

namespace distdoctor::checks::rdma {

inline constexpr std::uint16_t kRoceV2 = 4791;  // UDP (IANA: roce)

inline bool is_driven_by(const PathEnd& end, std::string_view driver) {
  if (!end.node->rdma.known()) return false;
  const RdmaDevice* device = find_rdma_device(*end.node->rdma, end.device);
  return device != nullptr && device->driver == driver;
}

// Of the device that NCCL names: hardware does not pass the host's packet filter.
inline bool through_host(const PathEnd& end) {
  return is_driven_by(end, "rdma_rxe");
}

struct Filtered {
  PathEnd end;
  Address peer;
  Way way = Way::in;
  FilterStop stop;
};

// Messages pass one way, their acknowledgements the other: both as datagrams to the same port.
inline std::optional<Filtered> filtered_at(const PathEnd& end, const PathEnd& other) {
  const auto own = address_of_gid(end.gid);
  const auto peer = address_of_gid(other.gid);
  if (!own || !peer || !through_host(end) || !end.node->firewall.known()) return std::nullopt;
  for (const Way way : {Way::in, Way::out}) {
    const Packet packet{.way = way,
                        .source = way == Way::in ? *peer : *own,
                        .destination = way == Way::in ? *own : *peer,
                        .port = kRoceV2,
                        .interface = netdev_of(end),
                        .udp = true};
    const FilterResult result = judge_packet(*end.node->firewall, packet);
    if (result.says == FilterSays::stopped) return {{end, *peer, way, result.stops.front()}};
  }
  return std::nullopt;
}

// At the receiver, else at the sender.
inline std::optional<Filtered> filtered_between(const PathEnd& sender, const PathEnd& receiver) {
  auto at = filtered_at(receiver, sender);
  return at ? at : filtered_at(sender, receiver);
}

inline std::vector<Fix> let_through(const Filtered& at) {
  const Opening opening{.node = at.end.node->host,
                        .peers = {at.peer},
                        .ports = {kRoceV2, kRoceV2},
                        .interface = netdev_of(at.end),
                        .way = at.way,
                        .udp = true};
  return open_before_fix(opening, *at.end.node->firewall, {{at.peer, at.stop}});
}

}  // namespace distdoctor::checks::rdma
