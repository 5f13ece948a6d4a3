// The walls around us: namespaces, capabilities, control groups, the platform below, and the disks
// that a job writes to. man 7 namespaces, man 7 capabilities, Documentation/admin-guide/cgroup-v2.
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

struct Disk {
  std::string purpose = {};  // "NCCL_DEBUG_FILE", "TMPDIR", "working folder", ...
  std::string path = {};
  std::int64_t size = 0;  // bytes
  std::int64_t free = 0;  // bytes, for the user who asked
  std::optional<std::int64_t> files_free =
      {};  // inodes; none: this file system does not count them
  bool read_only = false;
  int error = 0;  // errno of asking; then the rest says nothing
  bool operator==(const Disk&) const = default;
};

struct World {
  std::map<std::string, std::string> namespaces = {};  // "ipc": "ipc:[4026531839]"
  bool initial_user_namespace = true;                  // /proc/self/uid_map maps every id to itself
  std::vector<std::string> capabilities = {};          // effective: "CAP_IPC_LOCK"
  // Of /dev/shm, "0:27": NCCL shares memory where this and the host's hash agree; empty: no mount.
  std::string shm_device = {};
  std::optional<std::int64_t> memory_max = {};  // bytes, the smallest on the way up; none: no limit
  // Of the group with that limit, without the files that the kernel gives up on demand.
  std::optional<std::int64_t> memory_now = {};
  std::optional<std::int64_t> memory_kills = {};  // oom_kill of its memory.events, since it began
  std::optional<std::int64_t> pids_max = {};
  std::optional<std::int64_t> pids_now = {};
  // "wsl", "kvm", "hyper-v", "xen", "vmware", "vm" (another one); empty: none was seen
  std::string platform = {};
  std::string cloud = {};         // "aws", "gcp", "azure", "oci"; empty: none was seen
  std::string service_mesh = {};  // "istio", "linkerd", by the sidecar's own marks; empty: none
  std::vector<std::string> hidden = {};  // of /sys that NCCL reads and that is empty or masked here
  std::vector<Disk> disks = {};
  // Variables that send connections elsewhere, passwords masked: "http_proxy", "no_proxy".
  std::map<std::string, std::string> proxies = {};
  bool operator==(const World&) const = default;
};

template <class V, Is<Disk> T>
void fields(V& v, T& x) {
  v("purpose", x.purpose);
  v("path", x.path);
  v("size", x.size);
  v("free", x.free);
  v("files_free", x.files_free);
  v("read_only", x.read_only);
  v("error", x.error);
}
template <class V, Is<World> T>
void fields(V& v, T& x) {
  v("namespaces", x.namespaces);
  v("initial_user_namespace", x.initial_user_namespace);
  v("capabilities", x.capabilities);
  v("shm_device", x.shm_device);
  v("memory_max", x.memory_max);
  v("memory_now", x.memory_now);
  v("memory_kills", x.memory_kills);
  v("pids_max", x.pids_max);
  v("pids_now", x.pids_now);
  v("platform", x.platform);
  v("cloud", x.cloud);
  v("service_mesh", x.service_mesh);
  v("hidden", x.hidden);
  v("disks", x.disks);
  v("proxies", x.proxies);
}

}  // namespace distdoctor
