// What `iptables-save -c` and its kin print (man 8 iptables-save, iptables-extensions; tried with
// iptables 1.8.9, both kinds).
#pragma once

#include <distdoctor/facts/firewall.h>

#include <string_view>
#include <vector>

namespace distdoctor::collect {

// `family`: "ip" of iptables, "ip6" of ip6tables. All chains in their order.
std::vector<FilterChain> parse_iptables_save(std::string_view text,
                                             FilterTool tool,
                                             std::string_view family);

}  // namespace distdoctor::collect
