// Lists of nodes as Slurm writes them (scontrol show hostnames): "node[01-04,7],login1".
#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

constexpr std::size_t kMostHosts = 65'536;

// In the order of the text. Commas and white space separate, so the text of a file fits too. Zeros
// in front are kept, several brackets in one name multiply, the last one runs fastest.
// "user@host" is taken, since that is what users of ssh type; it is a node's name as a whole.
// Refused, each with its column: an empty list, a broken bracket, a name that another one repeats,
// a name that begins with '-' (ssh would take it for an option), characters outside
// [A-Za-z0-9._:-], names longer than 255, more than kMostHosts.
Result<std::vector<std::string>> parse_hostlist(std::string_view text);

// What one name has to keep to, wherever it came from; the reason, or "" for a good one.
std::string_view bad_host_name(std::string_view name);
// The same for a peer: a host, or user@host with a user of the same characters.
std::string_view bad_peer_name(std::string_view name);
// "node0" of "ann@node0" and of "node0".
std::string_view host_of_peer(std::string_view name);

}  // namespace distdoctor
