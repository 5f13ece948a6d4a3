#include "probe/shared_segments.h"

#include "base/text.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

namespace distdoctor::probe {
namespace {

namespace fs = std::filesystem;

std::optional<SharedSegment> named(const std::string& path) {
  struct stat about{};
  if (::lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  return SharedSegment{.path = path, .device = about.st_dev, .inode = about.st_ino};
}

// Files that a process has open, and files that it maps: their paths as the kernel tells them.
std::vector<std::string> files_of(const std::string& process) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator fd(process + "/fd", error), end; !error && fd != end;
       fd.increment(error)) {
    std::error_code unread;
    paths.push_back(fs::read_symlink(fd->path(), unread).string());
  }
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto path = line.find('/');
    if (path != std::string::npos) paths.push_back(line.substr(path));
  }
  return paths;
}

bool has(const std::string& process, const SharedSegment& segment) {
  const auto paths = files_of(process);
  return std::ranges::find(paths, segment.path) != paths.end();
}

// A process that we may not look into is another user's, and the segments are for their owner
// alone.
bool used(const SharedSegment& segment) {
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    if (!parse_int<int>(entry->path().filename().string())) continue;
    if (has(entry->path().string(), segment)) return true;
  }
  return error.value() != 0;
}

}  // namespace

SharedSegments nccl_segments_of(pid_t pid, const std::string& folder) {
  SharedSegments segments;
  for (const std::string& path : files_of("/proc/" + std::to_string(pid))) {
    const bool ours = path.starts_with(folder + "/nccl-");  // "... (deleted)" has no name any more
    const auto segment = ours ? named(path) : std::nullopt;
    if (segment && std::ranges::find(segments, *segment) == segments.end()) {
      segments.push_back(*segment);
    }
  }
  return segments;
}

void remove_unused(const SharedSegments& segments) {
  for (const SharedSegment& segment : segments) {
    if (named(segment.path) == segment && !used(segment)) ::unlink(segment.path.c_str());
  }
}

}  // namespace distdoctor::probe
