// TCP sockets by sock_diag(7), or by /proc/net/tcp where the kernel has no sock_diag for TCP.
#pragma once

#include "base/error.h"
#include "machine/captured.h"
#include "machine/file_tree.h"
#include "machine/sockets.h"

#include <linux/netlink.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace distdoctor::machine {

std::optional<SocketRow> decode_socket(nlmsghdr* message);
// /proc/net/tcp and tcp6 (man 5 proc). It does not tell a listener's backlog: then 0.
std::vector<SocketRow> parse_proc_tcp(std::string_view text);

// Listeners first, TIME-WAIT last; `most` beside the listeners.
Result<Sockets> ask_sockets(const FileTree& files, std::size_t most);

}  // namespace distdoctor::machine
