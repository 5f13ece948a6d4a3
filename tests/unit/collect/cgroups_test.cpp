#include "collect/cgroups.h"

#include "machine/memory_tree.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

World seen(const std::map<std::string, std::string>& texts) {
  std::map<std::string, machine::CapturedFile> files;
  for (const auto& [path, text] : texts) files[path].text = text;
  World world;
  see_groups(machine::MemoryTree(files, {}), world);
  return world;
}

const std::string kSlurm = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7";

}  // namespace

TEST_CASE("in which group a controller has us") {
  const std::string hybrid = "12:cpu,memory:/docker/ab\n1:name=systemd:/x\n0::/system.slice\n";
  CHECK(group_of(hybrid, "memory") == GroupPath{.v1 = true, .path = "/docker/ab"});
  CHECK(group_of(hybrid, "pids") == GroupPath{.v1 = false, .path = "/system.slice"});
  CHECK(group_of("0::/a:b\n", "pids") == GroupPath{.v1 = false, .path = "/a:b"});
  CHECK_FALSE(group_of("12:memory:/x\n", "pids").has_value());
  CHECK_FALSE(group_of("0::x\nrubbish\n", "pids").has_value());
}

TEST_CASE("the folders of a group, innermost first") {
  using Folders = std::vector<std::string>;
  CHECK(group_folders({.v1 = false, .path = "/a/b"}, "memory") ==
        Folders{"/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"});
  CHECK(group_folders({.v1 = true, .path = "/docker"}, "memory") ==
        Folders{"/sys/fs/cgroup/memory/docker", "/sys/fs/cgroup/memory"});
  CHECK(group_folders({.v1 = false, .path = "/"}, "pids") == Folders{"/sys/fs/cgroup"});
  CHECK(group_folders({.v1 = false, .path = "/../../user.slice"}, "pids") ==
        Folders{"/sys/fs/cgroup"});
}

TEST_CASE("limits and values") {
  CHECK(parse_group_limit("4096\n") == 4096);
  CHECK_FALSE(parse_group_limit("max\n").has_value());
  CHECK_FALSE(parse_group_limit("9223372036854771712\n").has_value());
  CHECK_FALSE(parse_group_limit("-1").has_value());
  CHECK(parse_group_value("oom 1\noom_kill 2\n", "oom_kill") == 2);
  CHECK_FALSE(parse_group_value("oom_kill\n", "oom_kill").has_value());
}

TEST_CASE("the smallest limit on the way up, without what the kernel gives up on demand") {
  const auto world =
      seen({{"/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0\n"},
            {kSlurm + "/step_0/memory.max", "max\n"},
            {kSlurm + "/memory.max", "1000\n"},
            {kSlurm + "/memory.current", "900\n"},
            {kSlurm + "/memory.stat", "anon 300\nfile 600\nshmem 100\n"},
            {kSlurm + "/memory.events", "oom_kill 3\n"},
            {"/sys/fs/cgroup/system.slice/memory.max", "5000\n"},
            {kSlurm + "/step_0/pids.max", "100\n"},
            {kSlurm + "/step_0/pids.current", "10\n"},
            {kSlurm + "/pids.max", "200\n"},
            {kSlurm + "/pids.current", "190\n"}});
  CHECK(world.memory_max == 1000);
  CHECK(world.memory_now == 400);
  CHECK(world.memory_kills == 3);
  CHECK(world.pids_max == 200);
  CHECK(world.pids_now == 190);
}

TEST_CASE("version 1 in a container, which shows the host's path but not its folders") {
  const std::string folder = "/sys/fs/cgroup/memory/";
  const auto world = seen({{"/proc/self/cgroup", "5:memory:/docker/ab\n"},
                           {folder + "memory.limit_in_bytes", "1000\n"},
                           {folder + "memory.usage_in_bytes", "990\n"},
                           {folder + "memory.stat", "total_cache 500\ntotal_shmem 20\n"},
                           {folder + "memory.oom_control", "under_oom 0\noom_kill 1\n"}});
  CHECK(world.memory_max == 1000);
  CHECK(world.memory_now == 510);
  CHECK(world.memory_kills == 1);
  CHECK_FALSE(world.pids_max.has_value());
}

TEST_CASE("without a limit nothing is said") {
  CHECK(seen({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.current", "5\n"}}) ==
        World{});
  CHECK(seen({}) == World{});
}
