// The walls around us (man 7 namespaces, man 7 capabilities) and what the platform below shows.
#pragma once

#include <distdoctor/facts/world.h>

#include "machine/captured.h"
#include "machine/machine.h"

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// Of /proc/self/uid_map: each id is itself.
bool is_initial_user_map(std::string_view text);
// CapEff of /proc/self/status, by the names of linux/capability.h in their order there.
std::vector<std::string> parse_capabilities(std::string_view status);
// "istio", "linkerd" by the ports that the sidecar of a pod listens on, or "".
std::string mesh_of(const std::vector<machine::SocketRow>& sockets);
// Whether Mems_allowed_list of /proc/self/status names another memory node than 0.
bool has_memory_nodes(std::string_view status);
// Of /sys what NCCL reads (topo.cc, net_socket.cc, ibvwrap.cc) and what is not there, though other
// files or netlink show that the kernel has it.
std::vector<std::string> hidden_parts(const machine::Machine& machine);

}  // namespace distdoctor::collect
