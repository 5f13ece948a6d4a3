#include "collect/shm.h"

#include "base/text.h"
#include "collect/collectors.h"
#include "machine/maps.h"
#include "machine/patient_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>

namespace distdoctor::collect {
namespace {

constexpr std::string_view kFolder = "/dev/shm";
constexpr std::size_t kMostMaps = std::size_t{16} << 20;
constexpr std::size_t kMostSegments = 1'000;

// mountinfo writes blanks and backslashes as \040 and the like.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' && i + 3 < text.size()
                          ? parse_int<unsigned char>(text.substr(i + 1, 3), 8)
                          : std::nullopt;
    plain += code ? static_cast<char>(*code) : text[i];
    if (code) i += 3;
  }
  return plain;
}

bool has_option(std::string_view options, std::string_view wanted) {
  return std::ranges::any_of(split(options, ','),
                             [wanted](std::string_view option) { return option == wanted; });
}

std::vector<ShmSegment> read_segments(const machine::Machine& machine) {
  std::vector<ShmSegment> segments;
  const auto now = machine.self().now_s;
  const auto& files = machine.files();
  for (const auto& name : files.list(kFolder).value_or(std::vector<std::string>{})) {
    const auto info = files.info(std::string(kFolder) + "/" + name);
    if (!name.starts_with("nccl-") || !info || segments.size() == kMostSegments) continue;
    segments.push_back({.name = name,
                        .bytes = info->size,
                        .age_s = std::max(0.0, now - info->modified_s),
                        .uid = info->uid});
  }
  return segments;
}

// Who maps what; false when some process would not say.
bool find_mappers(const machine::Machine& machine, std::vector<ShmSegment>& segments) {
  machine::PatientFiles files(machine.shared_files());
  bool all = true;
  for (const int pid : machine::pids(machine.files())) {
    const auto maps = files.read_head("/proc/" + std::to_string(pid) + "/maps", kMostMaps);
    const auto why = maps ? Unknown{} : unknown_because(maps.error());
    const bool refused = why.kind == Why::denied || why.kind == Why::timed_out;
    all = all && !refused && (!maps || maps->size() < kMostMaps);
    if (!maps) continue;
    for (const auto& name : mapped_segments(*maps)) {
      const auto found = std::ranges::find(segments, name, &ShmSegment::name);
      if (found != segments.end()) found->mapped_by.push_back(pid);
    }
  }
  return all;
}

// Each segment either has a mapper that we see, or none at all on the whole machine.
bool none_used_elsewhere(const machine::FileTree& files, const std::vector<ShmSegment>& segments) {
  return std::ranges::all_of(segments, [&files](const ShmSegment& segment) {
    return !segment.mapped_by.empty() ||
           files.in_use(std::string(kFolder) + "/" + segment.name) == false;
  });
}

}  // namespace

std::optional<Mount> parse_mount(std::string_view line) {
  const auto words = split_words(line);
  const auto dash = std::ranges::find(words, std::string_view("-"));
  if (dash - words.begin() < 6 || words.end() - dash < 4) return std::nullopt;
  const auto own = words[5];
  const auto whole = dash[3];
  return Mount{.point = unescaped(words[4]),
               .device = std::string(words[2]),
               .filesystem = std::string(dash[1]),
               .options = std::string(own) + "," + std::string(whole),
               .read_only = has_option(own, "ro") || has_option(whole, "ro")};
}

std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view point) {
  std::optional<Mount> found;
  for (const auto line : split_lines(mountinfo)) {
    auto mount = parse_mount(line);
    if (mount && mount->point == point) found = std::move(mount);
  }
  return found;
}

std::vector<std::string> mapped_segments(std::string_view maps) {
  std::vector<std::string> names;
  for (const auto& path : machine::mapped_files(maps)) {
    if (const auto name = after_prefix(path, "/dev/shm/")) names.emplace_back(*name);
  }
  return names;
}

void collect_shm(machine::Machine& machine, const CollectRequest& /*request*/, NodeFacts& node) {
  const auto& files = machine.files();
  const auto room = files.file_system(kFolder);
  if (!room) {
    node.shm = unknown_because(room.error());
    return;
  }
  const auto mount = find_mount(files.read("/proc/self/mountinfo").value_or(""), kFolder);
  SharedMemory shm{.size = room->size, .free = room->free, .read_only = room->read_only};
  if (mount) {
    shm.filesystem = mount->filesystem;
    shm.options = mount->options;
    shm.read_only = shm.read_only || mount->read_only;
  }
  shm.nccl_segments = read_segments(machine);
  const bool asked = shm.nccl_segments.empty() || find_mappers(machine, shm.nccl_segments);
  const bool mappers_known = asked && machine.processes().whole_machine;
  shm.all_processes_visible = mappers_known || (!shm.nccl_segments.empty() &&
                                                none_used_elsewhere(files, shm.nccl_segments));
  node.shm = std::move(shm);
}

}  // namespace distdoctor::collect
