#include "probe/shared_segments.h"

#include "machine/file_tree.h"
#include "machine/maps.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace distdoctor::probe {
namespace {

constexpr std::size_t kMostMaps = std::size_t{16} << 20;

std::optional<SharedSegment> named(const std::string& path) {
  struct stat about{};
  if (::lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  return SharedSegment{.path = path, .device = about.st_dev, .inode = about.st_ino};
}

// Files that a process has open, and files that it maps: their paths as the kernel tells them.
std::vector<std::string> files_of(const machine::FileTree& files, const std::string& process) {
  std::vector<std::string> paths;
  for (auto& [fd, path] : files.links_in(process + "/fd").value_or(machine::Links{})) {
    paths.push_back(std::move(path));
  }
  const auto maps = files.read_head(process + "/maps", kMostMaps).value_or("");
  std::ranges::move(machine::mapped_files(maps), std::back_inserter(paths));
  return paths;
}

}  // namespace

SharedSegments nccl_segments_of(pid_t pid, const std::string& folder) {
  SharedSegments segments;
  const auto files = machine::RootTree::open("/");
  if (!files) return segments;
  for (const std::string& path : files_of(**files, "/proc/" + std::to_string(pid))) {
    const bool ours = path.starts_with(folder + "/nccl-");  // "... (deleted)" has no name any more
    const auto segment = ours ? named(path) : std::nullopt;
    if (segment && std::ranges::find(segments, *segment) == segments.end()) {
      segments.push_back(*segment);
    }
  }
  return segments;
}

void remove_unused(const SharedSegments& segments) {
  const auto files = machine::RootTree::open("/");
  if (!files) return;
  for (const SharedSegment& segment : segments) {
    const bool same = named(segment.path) == segment;
    if (same && (*files)->in_use(segment.path) == false) ::unlink(segment.path.c_str());
  }
}

}  // namespace distdoctor::probe
