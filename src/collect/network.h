// What sysfs adds to the links that netlink tells of.
#pragma once

#include <distdoctor/facts/network.h>

#include "machine/file_tree.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::collect {

// /sys/class/net/NAME/speed in Mbit/s. None for what the kernel does not know (-1), and for links
// whose number is made up: a veth always says 10000, a bridge copies a port's.
std::optional<int> parse_speed(std::string_view text, LinkKind kind);

// The RDMA device of each interface: what /sys/class/infiniband/DEVICE says of its ports.
std::map<std::string, std::string> rdma_devices(const machine::FileTree& files);

}  // namespace distdoctor::collect
