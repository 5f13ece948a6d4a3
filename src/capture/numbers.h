// Addresses and numbers of things in a text, with others in their places.
#pragma once

#include "capture/scramble.h"

#include <string>
#include <string_view>

namespace distdoctor::capture {

// Hardware addresses (6 or 20 pairs; also at the end of a link's name, enxb8cef6123456), GUIDs,
// UUIDs and their beginnings behind "GPU-" and "MIG-", ids of containers and machines (12, 32, 40
// or 64 hexadecimal digits, some of them letters).
std::string hide_ids(std::string_view text, const Scrambler& scrambler);

// IP addresses, alone, with a port, or as a range. Of a range no order is left: one that is a
// subnet stays one, of any other only its ends' stand-ins remain, which no rule can be read from.
std::string hide_addresses(std::string_view text, const Scrambler& scrambler);

// Of /proc/net/tcp and tcp6: addresses in hexadecimal, each 32 bits in the machine's own order.
std::string hide_socket_table(std::string_view text, const Scrambler& scrambler);

}  // namespace distdoctor::capture
