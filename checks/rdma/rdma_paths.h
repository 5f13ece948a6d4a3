// What the checks of RDMA messages share: the ends of a path, and what its messages did.
#pragma once

#include <distdoctor/rdma_tries.h>
#include <distdoctor/reading.h>

#include "chosen.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace distdoctor::checks::rdma {

struct PathEnd {
  const NodeFacts* node;
  std::string device;
  int port;
  int gid_index;
  std::string gid;
  [[nodiscard]] std::string name() const { return port_text(device, port); }
  bool operator==(const PathEnd&) const = default;
};
inline PathEnd sender_of(const Case& c, const RdmaPath& path) {
  return {find_node(c.cluster, path.from), path.from_device, path.from_port, path.from_gid_index,
          path.from_gid};
}
inline PathEnd receiver_of(const Case& c, const RdmaPath& path) {
  return {find_node(c.cluster, path.to), path.to_device, path.to_port, path.to_gid_index,
          path.to_gid};
}

// The interface that the end's address is on; its node's `rdma` must be known.
inline std::string netdev_of(const PathEnd& end) {
  const RdmaPort* port = find_rdma_port(*end.node->rdma, end.device, end.port);
  if (port == nullptr) return "";
  const auto gid = std::ranges::find(port->gids, end.gid_index, &Gid::index);
  return gid == port->gids.end() ? "" : gid->netdev;
}

// An IPv4 GID (::ffff:a.b.c.d) as the address that RoCE v2 sends from; none of a link-local one.
inline std::optional<Address> address_of_gid(std::string_view gid) {
  const auto address = Address::parse(gid);
  if (!address || address->link_local()) return std::nullopt;
  return reading_detail::unmapped(*address);
}

// --- beside it ---

enum class Tcp : std::uint8_t { not_tried, passes, fails };

// Between the two nodes. Where it does not pass either, others say so, and why.
inline Tcp tcp_between(const Case& c, const RdmaPath& path) {
  Tcp tcp = Tcp::not_tried;
  for (const auto& [from, to] : {std::pair(path.from, path.to), std::pair(path.to, path.from)}) {
    const PairFacts* pair = find_pair(c.cluster, from, to);
    if (pair == nullptr) continue;
    for (const Dial& dial : pair->dials) {
      if (dial.outcome == Outcome::ok) return Tcp::passes;
      tcp = Tcp::fails;
    }
  }
  return tcp;
}

}  // namespace distdoctor::checks::rdma
