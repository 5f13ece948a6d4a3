// Rows of rtnetlink(7) about links and addresses, out of the kernel's messages.
#pragma once

#include <distdoctor/facts/network.h>

#include "base/error.h"

#include <linux/netlink.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::machine {

// IFLA_INFO_KIND, "" for hardware; then the ARPHRD_ type decides.
LinkKind link_kind(std::string_view info_kind, unsigned hardware_type);

struct LinkRow {
  Link link = {};
  int master = 0;  // its index
};
std::optional<LinkRow> decode_link(nlmsghdr* message);
// The link's index and the address; `label` is empty for IPv6.
std::optional<std::pair<int, LinkAddress>> decode_address(nlmsghdr* message);

Result<std::vector<Link>> ask_links();
Result<std::map<int, std::string>> ask_link_names();  // by index

}  // namespace distdoctor::machine
