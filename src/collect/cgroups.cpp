#include "collect/cgroups.h"

#include "base/text.h"

#include <algorithm>

namespace distdoctor::collect {
namespace {

constexpr std::string_view kRoot = "/sys/fs/cgroup";
constexpr std::int64_t kNoLimit = std::int64_t{1} << 61;
constexpr std::size_t kMostLevels = 64;

std::optional<std::int64_t> limit_at(const machine::FileTree& files, const std::string& path) {
  return parse_group_limit(files.word(path));
}

std::optional<std::int64_t> value_at(const machine::FileTree& files,
                                     const std::string& path,
                                     std::string_view name) {
  return parse_group_value(files.read(path).value_or(""), name);
}

// Files in memory are given up on demand, but for those of tmpfs, which count as files too.
std::optional<std::int64_t> held(std::optional<std::int64_t> used,
                                 std::optional<std::int64_t> cached,
                                 std::optional<std::int64_t> shared) {
  if (!used) return std::nullopt;
  return std::max(std::int64_t{0},
                  *used - std::max(std::int64_t{0}, cached.value_or(0) - shared.value_or(0)));
}

struct Memory {
  std::int64_t max = 0;
  std::optional<std::int64_t> now = {};
  std::optional<std::int64_t> kills = {};
};

std::optional<Memory> memory_v1(const machine::FileTree& files, const std::string& folder) {
  const auto max = limit_at(files, folder + "/memory.limit_in_bytes");
  if (!max) return std::nullopt;
  const auto stat = folder + "/memory.stat";
  return Memory{
      .max = *max,
      .now = held(limit_at(files, folder + "/memory.usage_in_bytes"),
                  value_at(files, stat, "total_cache"), value_at(files, stat, "total_shmem")),
      .kills = value_at(files, folder + "/memory.oom_control", "oom_kill")};
}

std::optional<Memory> memory_v2(const machine::FileTree& files, const std::string& folder) {
  const auto max = limit_at(files, folder + "/memory.max");
  if (!max) return std::nullopt;
  const auto stat = folder + "/memory.stat";
  return Memory{.max = *max,
                .now = held(limit_at(files, folder + "/memory.current"),
                            value_at(files, stat, "file"), value_at(files, stat, "shmem")),
                .kills = value_at(files, folder + "/memory.events", "oom_kill")};
}

void see_memory(const machine::FileTree& files, std::string_view groups, World& world) {
  const auto group = group_of(groups, "memory");
  if (!group) return;
  for (const auto& folder : group_folders(*group, "memory")) {
    const auto memory = group->v1 ? memory_v1(files, folder) : memory_v2(files, folder);
    if (!memory || (world.memory_max && *world.memory_max <= memory->max)) continue;
    world.memory_max = memory->max;
    world.memory_now = memory->now;
    world.memory_kills = memory->kills;
  }
}

// The group with the least room counts.
void see_pids(const machine::FileTree& files, std::string_view groups, World& world) {
  const auto group = group_of(groups, "pids");
  if (!group) return;
  for (const auto& folder : group_folders(*group, "pids")) {
    const auto max = limit_at(files, folder + "/pids.max");
    const auto now = limit_at(files, folder + "/pids.current");
    if (!max || !now) continue;
    const bool tighter =
        !world.pids_max || !world.pids_now || *max - *now < *world.pids_max - *world.pids_now;
    if (!tighter) continue;
    world.pids_max = max;
    world.pids_now = now;
  }
}

}  // namespace

std::optional<GroupPath> group_of(std::string_view text, std::string_view controller) {
  std::optional<GroupPath> found;
  for (const auto line : split_lines(text)) {
    const auto parts = split(line, ':', 3);
    if (parts.size() != 3 || !parts[2].starts_with('/')) continue;
    const auto names = split(parts[1], ',');
    if (std::ranges::find(names, controller) != names.end()) {
      return GroupPath{.v1 = true, .path = std::string(parts[2])};
    }
    if (parts[0] == "0" && parts[1].empty()) found = {.v1 = false, .path = std::string(parts[2])};
  }
  return found;
}

std::vector<std::string> group_folders(const GroupPath& group, std::string_view controller) {
  auto root = std::string(kRoot);
  if (group.v1) root += "/" + std::string(controller);
  std::vector<std::string> folders;
  auto path = group.path.find("/..") == std::string::npos ? group.path : "";
  while (path.size() > 1 && folders.size() < kMostLevels) {
    folders.push_back(root + path);
    path.resize(path.rfind('/'));
  }
  folders.push_back(root);
  return folders;
}

std::optional<std::int64_t> parse_group_limit(std::string_view text) {
  const auto value = parse_int<std::int64_t>(trim(text));
  return value && *value >= 0 && *value < kNoLimit ? value : std::nullopt;
}

std::optional<std::int64_t> parse_group_value(std::string_view text, std::string_view name) {
  for (const auto line : split_lines(text)) {
    const auto words = split_words(line);
    if (words.size() == 2 && words[0] == name) return parse_int<std::int64_t>(words[1]);
  }
  return std::nullopt;
}

void see_groups(const machine::FileTree& files, World& world) {
  const auto groups = files.read("/proc/self/cgroup").value_or("");
  see_memory(files, groups, world);
  see_pids(files, groups, world);
}

}  // namespace distdoctor::collect
