// Who keeps a program from a device node that is there: the errno tells.
#pragma once

#include "chosen.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace distdoctor::checks::rdma {

// fs/namei.c inode_permission: the file's mode or a security module says EACCES, a device control
// group EPERM, the RDMA control group EAGAIN (drivers/infiniband/core/cgroup.c), and so does the
// device where it belongs to another network namespace alone: EPERM (uverbs_main.c ib_uverbs_open).
enum class Refusal : std::uint8_t {
  unknown,
  mode,
  device_group,
  device_group_or_namespace,
  handles
};

inline bool is_exclusive(const RdmaNode& one) {
  return one.rdma->namespace_mode == "exclusive";
}

inline Refusal refusal_kind(const RdmaNode& one, const std::string& device) {
  if (!one.node->verbs.known()) return Refusal::unknown;
  const auto& all = one.node->verbs->devices;
  const auto found = std::ranges::find(all, device, &VerbsDevice::name);
  switch (found == all.end() ? 0 : found->error_code) {
    case EACCES:
      return Refusal::mode;
    case EPERM:
      return is_exclusive(one) ? Refusal::device_group_or_namespace : Refusal::device_group;
    case EAGAIN:
      return Refusal::handles;
    default:
      return Refusal::unknown;
  }
}

inline constexpr std::string_view kGroupOrNamespace =
    ": a device control group (cgroup) forbids it, or the device belongs to another network "
    "namespace (RDMA's mode is exclusive)";
inline constexpr std::string_view kRefusals[] = {
    "", ": its file mode or a security module forbids it",
    ": a device control group (cgroup) forbids it", kGroupOrNamespace,
    ": the RDMA control group (cgroup) has no handle left"};

inline std::string_view text_of(Refusal refusal) {
  return kRefusals[static_cast<std::size_t>(refusal)];
}

// In exclusive mode the kernel lists a device to programs of its own network namespace alone,
// though sysfs may be another one's.
inline bool in_another_namespace(const RdmaNode& one, const RdmaDevice& device) {
  if (!is_exclusive(one) || !one.node->verbs.known()) return false;
  const Verbs& verbs = *one.node->verbs;
  const bool listed =
      std::ranges::find(verbs.devices, device.name, &VerbsDevice::name) != verbs.devices.end();
  return verbs.error.empty() && verbs.warnings.empty() && !listed;
}

}  // namespace distdoctor::checks::rdma
