#include "collect/disks.h"

#include "capture/capture.h"
#include "support/check_cases.h"
#include "support/temporary_folder.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

using Folder = std::optional<std::string>;

std::vector<Disk> disks_of(const machine::CapturedMachine& captured) {
  return read_disks(*machine::Machine::captured(captured));
}

// A folder that this thread alone sees: its file system has room, and no inode left. Empty: why
// not.
std::string fill_with_files(const std::string& folder) {
  if (::unshare(CLONE_NEWNS) != 0) return "no mount namespace";
  const bool mounted =
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
      ::mount("none", folder.c_str(), "tmpfs", 0, "size=64m,nr_inodes=16,mode=1777") == 0;
  if (!mounted) return "no tmpfs";
  for (int i = 0; i < 100; ++i) {
    const auto file = folder + "/" + std::to_string(i);
    const int fd = ::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) return errno == ENOSPC ? "" : "no file";
    ::close(fd);
  }
  return "inodes without end";
}

std::vector<std::string> codes_about(const World& world) {
  ClusterFacts cluster = testing::healthy_cluster(2);
  cluster.nodes[1].world = world;
  const auto& check = testing::find_check("host/disk");
  Judge judge(check.codes);
  check.run({.cluster = cluster, .expect = {}}, judge);
  std::vector<std::string> codes;
  for (const Finding& finding : judge.findings()) codes.push_back(finding.code);
  return codes;
}

void see_a_full_table(const std::string& folder) {
  if (const auto why = fill_with_files(folder); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  machine::CapturedMachine captured;
  captured.environment = {{"TMPDIR", folder}};
  const auto machine = machine::Machine::captured(captured, machine::RootTree::open("/").value());
  capture::Recorder recorder(*machine);
  const auto disks = read_disks(recorder.machine());
  CHECK_FALSE(disks.empty());
  if (disks.empty()) return;
  CHECK(disks.front().path == folder);
  CHECK(disks.front().files_free == std::optional<std::int64_t>(0));
  CHECK(disks.front().free > 32 << 20);
  CHECK(codes_about({.disks = disks}) == std::vector<std::string>{"host-disk-full"});
  const auto again = capture::read(capture::write(recorder.notes()), "node.json");
  CHECK(again.has_value());
  if (!again) return;
  CHECK(disks_of(*again).front() == disks.front());
}

}  // namespace

TEST_CASE("the folder in which a file is made") {
  CHECK(folder_of("/logs/nccl.%h.%p", "/job") == Folder("/logs"));
  CHECK(folder_of("/logs/%h/nccl", "/job") == Folder("/logs"));
  CHECK(folder_of("/x", "/job") == Folder("/"));
  CHECK(folder_of("nccl.log", "/job") == Folder("/job"));
  CHECK(folder_of("run/nccl.log", "/job") == Folder("/job/run"));
  CHECK(folder_of("nccl.log", "") == Folder());
  CHECK(folder_of("", "/job") == Folder());
  CHECK(folder_of("/dev/stderr", "/job") == Folder());
  CHECK(folder_of_cores("core.%p", "/job") == Folder("/job"));
  CHECK(folder_of_cores("/cores/%e", "/job") == Folder("/cores"));
  CHECK(folder_of_cores("|/lib/systemd/systemd-coredump", "/job") == Folder());
}

TEST_CASE("the places of an environment") {
  const Settings settings = {{"TMPDIR", {.value = "/scratch"}},
                             {"NCCL_DEBUG_FILE", {.value = "/logs/%h"}},
                             {"TORCH_TRACE", {.value = "trace"}}};
  CHECK(places_of(settings, "/job") == std::vector<Place>{{"TMPDIR", "/scratch"},
                                                          {"working folder", "/job"},
                                                          {"NCCL_DEBUG_FILE", "/logs"},
                                                          {"TORCH_TRACE", "/job/trace"}});
  CHECK(places_of({}, "") == std::vector<Place>{{"temporary files", "/tmp"}});
}

TEST_CASE("a real file system without an inode left, seen, told, and written down") {
  const testing::TemporaryFolder folder;
  std::thread(see_a_full_table, folder.path).join();
}

TEST_CASE("disks of a captured machine: ours, and those of a worker that sees our files") {
  machine::CapturedMachine captured{.uptime_s = 100};
  captured.environment = {{"NCCL_DEBUG_FILE", "/logs/x"}};
  captured.limits["core"] = {.soft = {}, .hard = {}};
  auto& files = captured.files;
  files["/proc/self/cwd"].link = "/home/ann";
  files["/proc/self/ns/mnt"].link = "mnt:[1]";
  files["/proc/sys/kernel/core_pattern"].text = "/cores/%e\n";
  files["/proc/7/stat"].text = "7 (python3) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 9 1";
  files["/proc/7/cmdline"].text = std::string("python3\0train.py\0", 17);
  files["/proc/7/environ"].text =
      std::string("RANK=0\0WORLD_SIZE=2\0MASTER_ADDR=node0\0MASTER_PORT=1\0TMPDIR=/scratch\0", 68);
  files["/proc/7/status"].text = "Uid:\t1000\t1000\t1000\t1000\n";
  files["/proc/7/cwd"].link = "/job";
  files["/proc/7/ns/mnt"].link = "mnt:[1]";
  captured.file_systems["/tmp"] = {.size = 100, .free = 7};
  captured.file_systems["/cores"] = {.size = 100, .free = 9, .read_only = true};
  captured.file_systems["/job"] = {.size = 50, .free = 5};
  const std::vector<Disk> expected = {
      {.purpose = "temporary files", .path = "/tmp", .size = 100, .free = 7},
      {.purpose = "working folder", .path = "/home/ann", .error = ENOENT},
      {.purpose = "NCCL_DEBUG_FILE", .path = "/logs", .error = ENOENT},
      {.purpose = "core dumps", .path = "/cores", .size = 100, .free = 9, .read_only = true},
      {.purpose = "TMPDIR", .path = "/scratch", .error = ENOENT},
      {.purpose = "working folder", .path = "/job", .size = 50, .free = 5}};
  CHECK(disks_of(captured) == expected);

  files["/proc/7/ns/mnt"].link = "mnt:[2]";  // in a container of its own
  const auto disks = disks_of(captured);
  CHECK(std::ranges::find(disks, "/job", &Disk::path) == disks.end());
}

TEST_CASE("folders that we may not write, by test(1); root may write everywhere") {
  machine::CapturedMachine captured{.uid = 1000};
  captured.file_systems["/tmp"] = {.size = 100, .free = 7};
  captured.file_systems["/dev/shm"] = {.size = 100, .free = 7};
  captured.children = {{"test -w /tmp -a -x /tmp", {1, "", ""}},
                       {"test -w /dev/shm -a -x /dev/shm", {1, "", ""}}};
  const std::vector<Disk> expected = {
      {.purpose = "temporary files", .path = "/tmp", .size = 100, .free = 7, .error = EACCES},
      {.purpose = "shared memory", .path = "/dev/shm", .size = 100, .free = 7, .error = EACCES}};
  CHECK(disks_of(captured) == expected);
  captured.children["test -w /dev/shm -a -x /dev/shm"] = {0, "", ""};
  CHECK(disks_of(captured).size() == 1);
  captured.uid = 0;
  CHECK(disks_of(captured)[0].error == 0);
}
