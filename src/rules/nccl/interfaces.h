// Which interfaces NCCL takes, by its own rules (NCCL 2.28 misc/socket.cc findInterfaces,
// ncclFindInterfaces, ncclFindInterfaceMatchSubnet; utils.cc parseStringList, matchIfList).
#pragma once

#include <distdoctor/facts/network.h>
#include <distdoctor/facts/predicted.h>
#include <distdoctor/job.h>
#include <distdoctor/observed.h>

#include <string_view>
#include <vector>

namespace distdoctor::rules {

// The set of rules that a version such as "2.28.9" follows.
NcclRules nccl_rules_of(std::string_view version);
// `links` in ifindex order, as NodeFacts has them. Reads NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY
// and NCCL_COMM_ID from `settings`.
NcclChoice nccl_choice(const std::vector<Link>& links, const Settings& settings, NcclRules rules);

}  // namespace distdoctor::rules
