// Entering the world of a running process: `--pid N`.
#pragma once

#include "base/error.h"

#include <cstdint>

namespace distdoctor::fleet {

// Joins the mount, UTS, IPC, network and PID namespaces of the process where they differ from ours,
// and its root folder. Only while this process has one thread (setns(2)). True: the PID namespace
// is entered by children only, so fork and let the child go on.
// What lies in a container's files is its owner's. With our rights, and outside of its cgroups and
// filters, none of its programs is ever run: after another mount namespace run_child refuses.
Result<bool> enter_namespaces_of(int pid);

std::uint64_t net_namespace();  // the inode of ours; 0 where /proc does not tell

}  // namespace distdoctor::fleet
