// Files of /proc, /sys and control groups that tell of the walls around us: any bytes are facts or
// none, and never trouble.
#include "collect/world.h"

#include "collect/cgroups.h"
#include "collect/disks.h"
#include "collect/identity.h"
#include "collect/platform.h"
#include "target.h"

#include <cstdlib>
#include <string_view>

namespace {

using namespace distdoctor;  // NOLINT(google-build-using-namespace): all of them are under test

void must(bool holds) {
  if (!holds) std::abort();
}

void read_groups(std::string_view text) {
  for (const std::string_view controller : {"memory", "pids"}) {
    const auto group = collect::group_of(text, controller);
    if (!group) continue;
    const auto folders = collect::group_folders(*group, controller);
    must(!folders.empty());
    for (const auto& folder : folders) must(folder.starts_with("/sys/fs/cgroup"));
    for (const auto& folder : folders) must(folder.find("/..") == std::string::npos);
  }
  const auto limit = collect::parse_group_limit(text);
  must(!limit || *limit >= 0);
  static_cast<void>(collect::parse_group_value(text, "oom_kill"));
}

void read_folders(std::string_view text) {
  for (const auto& folder :
       {collect::folder_of(text, "/job"), collect::folder_of_cores(text, "/job")}) {
    must(!folder || folder->starts_with('/'));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_groups(text);
  read_folders(text);
  must(collect::parse_capabilities(text).size() <= 41);
  static_cast<void>(collect::is_initial_user_map(text));
  static_cast<void>(collect::has_memory_nodes(text));
  static_cast<void>(collect::is_enroot_root(text));
  static_cast<void>(collect::is_wsl(text));
  return 0;
}
