// The machine and the world that our agent lives in: identity, shared memory, limits, container.
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

// In which world a fact was read. An ssh login is not the job's world (other limits, mounts,
// environment), so a finding on limits, mounts or environment there is a notice at most.
enum class Context : std::uint8_t { unknown, shell, ssh, slurm_step, prolog, container, pid };
template <>
struct EnumNames<Context> {
  static constexpr std::string_view values[] = {"unknown", "shell",     "ssh", "step",
                                                "prolog",  "container", "pid"};
};
constexpr bool is_the_jobs_context(Context context) {
  return context == Context::slurm_step || context == Context::container || context == Context::pid;
}

struct Identity {
  std::string hostname = {};  // uname(2) nodename
  std::string boot_id = {};   // NCCL hashes it with hostname: who is on my node
  std::string kernel = {};    // release
  std::string os = {};        // PRETTY_NAME of os-release
  // docker, podman, lxc, kubernetes, apptainer, enroot, charliecloud, or empty
  std::string container = {};
  std::string user = {};
  int uid = 0;
  bool operator==(const Identity&) const = default;
};

struct ShmSegment {
  std::string name = {};  // "nccl-Ab12Cd"
  std::int64_t bytes = 0;
  double age_s = 0;
  int uid = 0;
  std::vector<int> mapped_by = {};  // pids
  bool operator==(const ShmSegment&) const = default;
};

struct SharedMemory {
  std::string filesystem = {};  // tmpfs; empty: /dev/shm is no mount point
  std::int64_t size = 0;        // bytes; 0: no limit (tmpfs with size=0, which has no blocks)
  std::int64_t free = 0;        // bytes, for an ordinary user; says nothing without a limit
  bool read_only = false;
  std::string options = {};
  std::vector<ShmSegment> nccl_segments = {};
  bool all_processes_visible = false;  // else nobody knows who maps a segment
  bool operator==(const SharedMemory&) const = default;
};

struct Limit {
  std::optional<std::int64_t> soft = {};  // none: unlimited
  std::optional<std::int64_t> hard = {};
  bool operator==(const Limit&) const = default;
};

// What hangs on hardware that later modules look at closely; here only whether it is there.
struct Devices {
  std::vector<std::string> gpus = {};  // /dev/nvidia0, ... or kfd nodes
  std::vector<std::string> rdma = {};  // /sys/class/infiniband entries with an ACTIVE port
  bool operator==(const Devices&) const = default;
};

struct NcclLibrary {
  std::string path = {};
  std::string version = {};  // "2.28.9"
  std::string origin = {};   // "mapped by pid 7", "LD_LIBRARY_PATH", "ld.so.cache"
  std::string cuda = {};     // that it was built for: "12.9", "12"; empty: not known
  bool operator==(const NcclLibrary&) const = default;
};

template <class V, Is<Identity> T>
void fields(V& v, T& x) {
  v("hostname", x.hostname);
  v("boot_id", x.boot_id);
  v("kernel", x.kernel);
  v("os", x.os);
  v("container", x.container);
  v("user", x.user);
  v("uid", x.uid);
}
template <class V, Is<ShmSegment> T>
void fields(V& v, T& x) {
  v("name", x.name);
  v("bytes", x.bytes);
  v("age_s", x.age_s);
  v("uid", x.uid);
  v("mapped_by", x.mapped_by);
}
template <class V, Is<SharedMemory> T>
void fields(V& v, T& x) {
  v("filesystem", x.filesystem);
  v("size", x.size);
  v("free", x.free);
  v("read_only", x.read_only);
  v("options", x.options);
  v("nccl_segments", x.nccl_segments);
  v("all_processes_visible", x.all_processes_visible);
}
template <class V, Is<Limit> T>
void fields(V& v, T& x) {
  v("soft", x.soft);
  v("hard", x.hard);
}
template <class V, Is<Devices> T>
void fields(V& v, T& x) {
  v("gpus", x.gpus);
  v("rdma", x.rdma);
}
template <class V, Is<NcclLibrary> T>
void fields(V& v, T& x) {
  v("path", x.path);
  v("version", x.version);
  v("origin", x.origin);
  v("cuda", x.cuda);
}

}  // namespace distdoctor
