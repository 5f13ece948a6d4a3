// Whether the packet filter of a node ends what an RDMA port sends, and the rule that mends it.
// Only software RDMA passes there.
#pragma once

#include <distdoctor/filters.h>

#include "rdma_paths.h"

#include <optional>
#include <string>

namespace distdoctor::checks::rdma {

inline constexpr std::uint16_t kRoceV2 = 4791;  // UDP (IANA: roce)

// Of the device that NCCL names: hardware does not pass the host's packet filter.
inline bool through_host(const PathEnd& end) {
  if (!end.node->rdma.known()) return false;
  const RdmaDevice* device = find_rdma_device(*end.node->rdma, end.device);
  return device != nullptr && in_software(*device);
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

// Before the rule that decides; after all of them where that is the policy.
inline std::string nft_rule(const Filtered& at) {
  const FilterStop& stop = at.stop;
  const std::string chain =
      stop.family + " " + shell_quote(stop.table) + " " + shell_quote(stop.chain);
  const std::string where = stop.before == 0
                                ? "add rule " + chain
                                : fmt::format("insert rule {} position {}", chain, stop.before);
  return fmt::format("nft {} {} {} {} udp dport {} accept", where, at.peer.v6 ? "ip6" : "ip",
                     at.way == Way::in ? "saddr" : "daddr", at.peer.text(), kRoceV2);
}

inline std::string iptables_rule(const Filtered& at) {
  const FilterStop& stop = at.stop;
  const std::string table = stop.table == "filter" ? "" : " -t " + shell_quote(stop.table);
  const std::string chain = shell_quote(stop.chain);
  const std::string where =
      stop.before == 0 ? "-A " + chain : fmt::format("-I {} {}", chain, stop.before);
  return fmt::format("{}{} {} {} {} -p udp --dport {} -j ACCEPT", tool_of(stop), table, where,
                     at.way == Way::in ? "-s" : "-d", at.peer.text(), kRoceV2);
}

inline Fix let_through(const Filtered& at) {
  return {.node = at.end.node->host,
          .kind = Fix::Kind::shell,
          .command = at.stop.tool == FilterTool::nft ? nft_rule(at) : iptables_rule(at),
          .text = "as root; write it into what these rules come from, too"};
}

}  // namespace distdoctor::checks::rdma
