// Which interfaces NCCL takes, by its own rules (NCCL 2.28 misc/socket.cc findInterfaces,
// ncclFindInterfaces, ncclFindInterfaceMatchSubnet; bootstrap.cc bootstrapNetInit; net_socket.cc
// ncclNetSocketInit; 2.29 moved the first to os/linux.cc unchanged).
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/facts/predicted.h>
#include <distdoctor/job.h>
#include <distdoctor/observed.h>

#include <string_view>

namespace distdoctor::rules {

// The set of rules that a version such as "2.28.9" or "2.21.5+cuda12.4" follows; the newest one for
// what is no version.
NcclRules nccl_rules_of(std::string_view version);

// Reads node.links in the kernel's order, node.names for a host name in NCCL_COMM_ID, and
// NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY and NCCL_COMM_ID from `settings`. Unknown where the links
// were not seen, or the host name was not resolved there.
Observed<NcclChoice> nccl_choice(const NodeFacts& node, const Settings& settings, NcclRules rules);

}  // namespace distdoctor::rules
