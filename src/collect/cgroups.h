// What control groups grant (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst).
#pragma once

#include <distdoctor/facts/world.h>

#include "machine/file_tree.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// Of /proc/self/cgroup: the path of the group that has this controller in version 1, or else that
// of version 2. None: in neither.
struct GroupPath {
  bool v1 = false;
  std::string path = {};
  bool operator==(const GroupPath&) const = default;
};
std::optional<GroupPath> group_of(std::string_view text, std::string_view controller);

// The folders of a group and all above it below its root, innermost first. A group that lies
// outside of what we see ("/../x", or the host's path inside a container) leaves only the root.
std::vector<std::string> group_folders(const GroupPath& group, std::string_view controller);

// "max" and what stands for it in version 1 (a number near 2^63) are no limit.
std::optional<std::int64_t> parse_group_limit(std::string_view text);
// Of memory.stat, memory.events, memory.oom_control: "NAME VALUE" a line.
std::optional<std::int64_t> parse_group_value(std::string_view text, std::string_view name);

// memory_*, pids_* of `world`.
void see_groups(const machine::FileTree& files, World& world);

}  // namespace distdoctor::collect
