// Who this machine is, and in which world we run on it.
#pragma once

#include <distdoctor/facts/host.h>

#include "machine/machine.h"

#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::collect {

// PRETTY_NAME of os-release(5), without its quotes.
std::string parse_os_name(std::string_view os_release);
// "docker", "kubernetes", ... by the control groups of cgroups(7) that we are in, or "".
std::string container_of_cgroups(std::string_view text);
// Of /proc/self/mountinfo: enroot leaves no other mark.
bool is_enroot_root(std::string_view mountinfo);
// docker, podman, kubernetes, apptainer, enroot, charliecloud, lxc or what another engine calls
// itself; "" outside of a container.
std::string container_kind(const machine::Machine& machine);

// Ours: prolog, Slurm step, container, ssh or shell. A container comes before ssh, since an sshd
// inside the container shows the job's world; a step before both.
Context context_of(const machine::Machine& machine);

}  // namespace distdoctor::collect
