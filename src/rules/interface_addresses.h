// The rows of getifaddrs(3): what NCCL and Gloo walk when they look for an interface.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/facts/network.h>

#include <string>
#include <vector>

namespace distdoctor::rules {

struct InterfaceAddress {
  std::string name = {};  // ifa_name: the label of an IPv4 address ("eth0:1"), else the link's name
  Address address = {};   // with its zone when it is IPv6 link-local, as the scope id says
  int prefix = 0;
  const Link* link = nullptr;
};

// On Linux all IPv4 addresses come first, then all IPv6 ones, each in the order of the links and of
// their addresses (glibc ifaddrs.c asks one RTM_GETADDR dump over all families). Points into
// `links`.
std::vector<InterfaceAddress> interface_addresses(const std::vector<Link>& links);

}  // namespace distdoctor::rules
