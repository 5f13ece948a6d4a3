// What of a bond carries data, by its mode (Documentation/networking/bonding.rst); no judgement.
#pragma once

#include <distdoctor/facts/network.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor {

using Members = std::vector<const BondMember*>;

// Its members share the load, so that the loss of one makes it slower; else one has all of it.
inline bool shares_load(const Bond& bond) {
  return bond.mode != "active-backup" && bond.mode != "broadcast";
}

inline Members members_up(const Bond& bond) {
  Members up;
  for (const BondMember& member : bond.members) {
    if (member.up) up.push_back(&member);
  }
  return up;
}

// Of 802.3ad: the aggregator that carries the data. Where the kernel does not show it to us, the
// one with the most members that are up, which is how it chooses by default among equal ones; 0:
// none is known.
inline int carrying_aggregator(const Bond& bond) {
  if (bond.aggregator != 0) return bond.aggregator;
  std::map<int, std::size_t> sizes;
  for (const BondMember* member : members_up(bond)) {
    if (member->aggregator != 0) ++sizes[member->aggregator];
  }
  const auto largest =
      std::ranges::max_element(sizes, {}, [](const auto& entry) { return entry.second; });
  return largest == sizes.end() ? 0 : largest->first;
}

// Those that are up and have a part in the load.
inline Members members_carrying(const Bond& bond) {
  Members all = members_up(bond);
  if (bond.mode == "active-backup") {
    std::erase_if(all, [&](const BondMember* member) { return member->name != bond.active; });
  } else if (bond.mode == "802.3ad") {
    const int carrying = carrying_aggregator(bond);
    std::erase_if(all, [&](const BondMember* member) {
      return member->aggregator != 0 && member->aggregator != carrying;
    });
  }
  return all;
}

// What one TCP connection can have of a link: of a bond whose mode keeps each connection on one
// member, the slowest of those that it may be put on. None: unknown.
inline std::optional<int> one_stream_mbps(const Link& link) {
  if (!link.bond || link.bond->mode == "balance-rr") return link.speed_mbps;
  std::optional<int> slowest;
  for (const BondMember* member : members_carrying(*link.bond)) {
    if (!member->speed_mbps) return link.speed_mbps;
    if (!slowest || *member->speed_mbps < *slowest) slowest = member->speed_mbps;
  }
  return slowest ? slowest : link.speed_mbps;
}

}  // namespace distdoctor
