// Rows of rtnetlink(7) about routes, policy rules and neighbours, out of the kernel's messages.
#pragma once

#include <distdoctor/facts/network.h>

#include "base/error.h"

#include <linux/netlink.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor::machine {

using LinkNames = std::map<int, std::string>;  // by index

// One route for each next hop. None for copies that the kernel keeps as a cache.
std::vector<Route> decode_routes(nlmsghdr* message, const LinkNames& names);
// A rule that also selects by what a PolicyRule does not hold ("not", ports, users, protocol, TOS,
// suppressed prefixes) has the action `other`: nobody may think that he knows what it does.
std::optional<PolicyRule> decode_rule(nlmsghdr* message);
// None for multicast and broadcast entries (NUD_NOARP).
std::optional<Neighbour> decode_neighbour(nlmsghdr* message, const LinkNames& names);

// All or none: of a part nobody can say where a packet goes. More than `most` are an Error.
Result<std::vector<Route>> ask_routes(std::size_t most);
Result<std::vector<PolicyRule>> ask_rules();
Result<std::vector<Neighbour>> ask_neighbours(std::size_t most);
Result<RouteAnswer> ask_route_to(const Address& destination, const std::optional<Address>& source);

}  // namespace distdoctor::machine
