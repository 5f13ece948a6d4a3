#include "support/container_machines.h"

#include <fmt/format.h>

#include <string_view>

namespace distdoctor::testing {
namespace {

using machine::CapturedMachine;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// CapEff: Docker's and Podman's defaults; none.
constexpr std::string_view kDocker = "00000000a80425fb";
constexpr std::string_view kPodman = "00000000800405fb";
constexpr std::string_view kNone = "0000000000000000";

void add_status(CapturedMachine& captured, std::string_view capabilities) {
  captured.files["/proc/self/status"].text = fmt::format(
      "Name:\tdistdoctor\nState:\tR (running)\nUid:\t{0}\t{0}\t{0}\t{0}\nCapInh:\t{1}\n"
      "CapEff:\t{2}\nMems_allowed_list:\t0\n",
      captured.uid, kNone, capabilities);
  captured.files["/proc/self/uid_map"].text = "         0          0 4294967295\n";
  captured.files["/proc/self/cgroup"].text = "0::/\n";
  captured.files["/proc/self/cwd"].link = "/workspace";
  captured.files["/proc/sys/kernel/random/boot_id"].text = "2b0e1fa8-5b6c-4a0e-9d7e-000000000001\n";
}

void add_namespaces(CapturedMachine& captured, int first) {
  for (const char* name : {"cgroup", "ipc", "mnt", "net", "pid", "uts"}) {
    captured.files[fmt::format("/proc/self/ns/{}", name)].link =
        fmt::format("{}:[{}]", name, first++);
  }
  captured.files["/proc/self/ns/user"].link = "user:[4026531837]";
}

void add_disk(CapturedMachine& captured, const std::string& path, std::int64_t size, bool ro) {
  captured.file_systems[path] = {.size = size, .free = ro ? 0 : size / 2, .read_only = ro};
}

void add_mounts(CapturedMachine& captured, std::string_view root, std::string_view shm) {
  captured.files["/proc/self/mountinfo"].text = fmt::format("{}\n{}\n", root, shm);
}

constexpr std::string_view kOverlay =
    "512 399 0:44 / / rw,relatime master:136 - overlay overlay "
    "rw,lowerdir=/var/lib/docker/overlay2/l/A:/var/lib/docker/overlay2/l/B";

CapturedMachine container(const std::string& hostname, int uid, std::string_view capabilities) {
  CapturedMachine captured{
      .hostname = hostname, .release = "6.8.0-45-generic", .uid = uid, .uptime_s = 90'000};
  captured.limits["nofile"] = {.soft = 1048576, .hard = 1048576};
  captured.limits["memlock"] = {.soft = 8 * kMiB, .hard = 8 * kMiB};
  captured.limits["core"] = {.soft = 0, .hard = {}};
  captured.sockets = std::vector<machine::SocketRow>{};
  add_status(captured, capabilities);
  add_namespaces(captured, 1026532000 + uid);
  add_disk(captured, "/tmp", 100 * kGiB, false);
  add_disk(captured, "/workspace", 100 * kGiB, false);
  return captured;
}

void add_group_v2(CapturedMachine& captured, const std::string& memory, const std::string& pids) {
  const std::string root = "/sys/fs/cgroup";
  auto& files = captured.files;
  files[root + "/memory.max"].text = memory + "\n";
  files[root + "/memory.current"].text = std::to_string(40 * kGiB) + "\n";
  // Nearly all of it is page cache.
  files[root + "/memory.stat"].text =
      fmt::format("anon {}\nfile {}\nshmem {}\n", 3 * kGiB, 37 * kGiB, kGiB);
  files[root + "/memory.events"].text = "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n";
  files[root + "/pids.max"].text = pids + "\n";
  files[root + "/pids.current"].text = "31\n";
}

}  // namespace

void set_shm(CapturedMachine& captured, std::int64_t bytes) {
  captured.file_systems["/dev/shm"] = {.size = bytes, .free = bytes};
}

CapturedMachine fake_docker_default() {
  auto captured = container("3f1c2a9b7d10", 0, kDocker);
  captured.files["/.dockerenv"].size = 0;
  add_group_v2(captured, "max", "max");
  add_mounts(captured, kOverlay,
             "530 514 0:73 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs shm rw,size=65536k");
  set_shm(captured, 64 * kMiB);
  return captured;
}

CapturedMachine fake_docker_v1() {
  auto captured = fake_docker_default();
  auto& files = captured.files;
  std::erase_if(files, [](const auto& file) { return file.first.starts_with("/sys/fs/cgroup"); });
  files["/proc/self/cgroup"].text =
      "12:pids:/docker/3f1c2a9b\n5:memory:/docker/3f1c2a9b\n1:name=systemd:/docker/3f1c2a9b\n";
  const std::string folder = "/sys/fs/cgroup/memory/";
  files[folder + "memory.limit_in_bytes"].text = std::to_string(64 * kGiB) + "\n";
  files[folder + "memory.usage_in_bytes"].text = std::to_string(63 * kGiB) + "\n";
  files[folder + "memory.stat"].text =
      fmt::format("cache 1\ntotal_cache {}\ntotal_shmem {}\n", 50 * kGiB, kGiB);
  files[folder + "memory.oom_control"].text = "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n";
  files["/sys/fs/cgroup/pids/pids.max"].text = "max\n";
  files["/sys/fs/cgroup/pids/pids.current"].text = "31\n";
  return captured;
}

CapturedMachine fake_pod() {
  auto captured = container("trainer-worker-0", 0, kDocker);
  captured.environment["KUBERNETES_SERVICE_HOST"] = "10.96.0.1";
  captured.files["/var/run/secrets/kubernetes.io/serviceaccount/namespace"].text = "ml";
  add_group_v2(captured, std::to_string(64 * kGiB), "4194304");
  add_mounts(captured, kOverlay,
             "731 700 0:81 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=67108864k");
  set_shm(captured, 64 * kGiB);
  return captured;
}

void add_fake_sidecar(CapturedMachine& captured) {
  auto rows = *captured.sockets;
  for (const int port : {15000, 15001, 15006, 15020, 15021, 15090}) {
    rows.push_back({.listening = true, .local_port = static_cast<std::uint16_t>(port)});
  }
  captured.sockets = rows;
}

CapturedMachine fake_podman_rootless() {
  auto captured = container("8d2e5c1f0a77", 0, kPodman);
  captured.environment["container"] = "podman";
  captured.files["/run/.containerenv"].text = "";
  captured.files["/proc/self/uid_map"].text =
      "         0       1000          1\n         1     100000      65536\n";
  captured.files["/proc/self/ns/user"].link = "user:[4026532617]";
  add_group_v2(captured, "max", "2048");
  add_mounts(captured, kOverlay,
             "610 590 0:66 / /dev/shm rw,nosuid,nodev - tmpfs shm rw,size=64000k,uid=1000");
  set_shm(captured, 64'000 * 1024);
  return captured;
}

CapturedMachine fake_apptainer() {
  auto captured = container("gpu07", 1000, kNone);
  captured.environment["APPTAINER_CONTAINER"] = "/images/torch.sif";
  captured.files["/.singularity.d/runscript"].text = "#!/bin/sh\n";
  captured.files["/proc/self/cgroup"].text = "0::/user.slice/user-1000.slice/session-4.scope\n";
  captured.files["/proc/self/cwd"].link = "/opt/app";
  add_disk(captured, "/opt/app", kGiB, true);
  add_mounts(captured, "402 399 7:0 / / ro,nosuid,nodev - squashfs /dev/loop0 ro",
             "410 402 0:25 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw,size=263852k");
  set_shm(captured, 250 * kGiB);
  return captured;
}

CapturedMachine fake_enroot() {
  auto captured = container("gpu07", 1000, kNone);
  captured.environment["SLURM_STEP_ID"] = "0";
  captured.environment["SLURM_PROCID"] = "3";
  captured.files["/proc/self/uid_map"].text = "      1000       1000          1\n";
  captured.files["/proc/self/ns/user"].link = "user:[4026533001]";
  captured.files["/proc/self/cgroup"].text = "0::/system.slice/slurmstepd.scope/job_77/step_0\n";
  add_mounts(captured,
             "402 399 8:2 /var/lib/enroot/data/pyxis_77.0 / rw,nosuid - ext4 /dev/sda2 rw",
             "410 402 0:25 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw,size=263852k");
  set_shm(captured, 250 * kGiB);
  return captured;
}

CapturedMachine fake_wsl_distribution() {
  auto captured = container("DESKTOP-1", 1000, kNone);
  captured.release = "5.15.153.1-microsoft-standard-WSL2";
  captured.files["/dev/dxg"].size = 0;
  captured.files["/proc/self/cgroup"].text = "0::/init.scope\n";
  captured.files["/proc/cpuinfo"].text = "processor\t: 0\nflags\t\t: fpu vme hypervisor avx\n";
  add_mounts(captured, "60 52 8:32 / / rw,relatime - ext4 /dev/sdc rw",
             "75 60 0:62 / /dev/shm rw,nosuid,nodev,noatime - tmpfs none rw");
  set_shm(captured, 8 * kGiB);
  return captured;
}

}  // namespace distdoctor::testing
