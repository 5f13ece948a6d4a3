// What a link does with priorities, out of the kernel's messages about data centre bridging
// (IEEE 802.1Qaz; include/uapi/linux/dcbnl.h and net/dcb/dcbnl.c of Linux 6.6).
#pragma once

#include <distdoctor/facts/network.h>

#include "base/error.h"

#include <linux/netlink.h>

#include <optional>
#include <string>

namespace distdoctor::machine {

// Of an answer to DCB_CMD_IEEE_GET; none: it is no such message, or tells nothing.
std::optional<LinkQos> decode_qos(nlmsghdr* message);

// EOPNOTSUPP of a driver that knows no DCB, or tells nothing; ENODEV where there is no such link.
Result<LinkQos> ask_qos(const std::string& interface);

}  // namespace distdoctor::machine
