// Bonds as /proc/net/bonding/NAME tells them (drivers/net/bonding/bond_procfs.c of Linux 6.1).
#pragma once

#include <distdoctor/facts/network.h>

#include <optional>
#include <string_view>

namespace distdoctor::collect {

// "802.3ad" of "IEEE 802.3ad Dynamic link aggregation"; what is not known stays as it is.
std::string_view bond_mode(std::string_view kernels_words);
// None: this is no such text.
std::optional<Bond> parse_bond(std::string_view text);

}  // namespace distdoctor::collect
