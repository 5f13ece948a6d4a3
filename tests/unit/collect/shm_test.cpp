#include "collect/shm.h"

#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::string_view kMountinfo =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "25 22 0:23 / /dev/shm rw,nosuid shared:2 - tmpfs tmpfs rw,size=65536k\n"
    "31 22 0:29 / /mnt/a\\040b ro - nfs4 server:/x rw\n"
    "30 25 0:27 / /dev/shm ro,nosuid,nodev - tmpfs shm rw,size=131072k,inode64\n";

constexpr std::string_view kMaps =
    "7f00-7f10 r-xp 00000000 08:01 11 /usr/lib/libc.so.6\n"
    "7f20-7f30 rw-s 00000000 00:1b 12                         /dev/shm/nccl-Ab12Cd\n"
    "7f30-7f40 rw-s 00001000 00:1b 12                         /dev/shm/nccl-Ab12Cd\n"
    "7f40-7f50 rw-s 00000000 00:1b 13                         /dev/shm/nccl-Gone00 (deleted)\n"
    "7f60-7f70 rw-p 00000000 00:00 0\n";

machine::CapturedMachine with_segments() {
  machine::CapturedMachine captured{.now_s = 10'000};
  auto& files = captured.files;
  captured.file_systems["/dev/shm"] = {.size = 67'108'864, .free = 1'000, .read_only = false};
  files["/proc/self/mountinfo"].text =
      "25 22 0:23 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=64M\n";
  files["/dev/shm/nccl-Ab12Cd"] = {.size = 9'637'892, .modified_s = 9'000, .uid = 1000};
  files["/dev/shm/nccl-Stale1"] = {.size = 10, .modified_s = 4'000};
  files["/dev/shm/torch_7"] = {.size = 10, .modified_s = 4'000};
  files["/proc/7/stat"].text = "7 (python3) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 9 1";
  files["/proc/7/maps"].text = kMaps;
  return captured;
}

}  // namespace

TEST_CASE("mounts: the last one at a point counts") {
  const auto shm = find_mount(kMountinfo, "/dev/shm");
  REQUIRE(shm.has_value());
  CHECK(*shm == Mount{.point = "/dev/shm",
                      .device = "0:27",
                      .filesystem = "tmpfs",
                      .options = "ro,nosuid,nodev,rw,size=131072k,inode64",
                      .read_only = true});
  CHECK(find_mount(kMountinfo, "/mnt/a b")->filesystem == "nfs4");
  CHECK(find_mount(kMountinfo, "/mnt/a b")->read_only);
  CHECK_FALSE(find_mount(kMountinfo, "/")->read_only);
  CHECK_FALSE(find_mount(kMountinfo, "/dev").has_value());
}

TEST_CASE("mount lines that are none") {
  for (const std::string_view line : {"", "25 22 0:23 / /dev/shm rw", "25 22 0:23 / /dev/shm rw -",
                                      "- - - -", "25 22 0:23 / /dev/shm - tmpfs tmpfs rw"}) {
    CAPTURE(line);
    CHECK_FALSE(parse_mount(line).has_value());
  }
}

TEST_CASE("segments that a process maps, each once, without deleted ones") {
  CHECK(mapped_segments(kMaps) == std::vector<std::string>{"nccl-Ab12Cd"});
  CHECK(mapped_segments("").empty());
}

TEST_CASE("/dev/shm of a captured machine: room, options, NCCL's segments and who maps them") {
  NodeFacts node;
  collect_shm(*machine::Machine::captured(with_segments()), {}, node);
  REQUIRE(node.shm.known());
  CHECK(node.shm->size == 67'108'864);
  CHECK(node.shm->free == 1'000);
  CHECK(node.shm->filesystem == "tmpfs");
  CHECK(node.shm->options == "rw,nosuid,rw,size=64M");
  CHECK_FALSE(node.shm->read_only);
  REQUIRE(node.shm->nccl_segments.size() == 2);
  const ShmSegment used{
      .name = "nccl-Ab12Cd", .bytes = 9'637'892, .age_s = 1'000, .uid = 1000, .mapped_by = {7}};
  CHECK(node.shm->nccl_segments[0] == used);
  CHECK(node.shm->nccl_segments[1].age_s == doctest::Approx(6'000));
  CHECK(node.shm->nccl_segments[1].mapped_by.empty());
  CHECK(node.shm->all_processes_visible);  // nobody has the other one open
}

TEST_CASE("a segment that a process out of our sight has open") {
  auto captured = with_segments();
  captured.files["/dev/shm/nccl-Stale1"].in_use = true;
  NodeFacts node;
  collect_shm(*machine::Machine::captured(captured), {}, node);
  CHECK_FALSE(node.shm->all_processes_visible);
}

TEST_CASE("a machine without /dev/shm") {
  NodeFacts node;
  collect_shm(*machine::Machine::captured({}), {}, node);
  CHECK(node.shm.why().text == "statvfs /dev/shm: No such file or directory");
}
