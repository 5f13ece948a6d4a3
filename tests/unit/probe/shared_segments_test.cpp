#include "probe/shared_segments.h"

#include "support/temporary_folder.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace distdoctor;
namespace fs = std::filesystem;

namespace {

using Folder = testing::TemporaryFolder;

int opened(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

}  // namespace

TEST_CASE("shared segments: NCCL's with a name are seen, and go when nobody has them") {
  const Folder folder;
  const std::string kept = folder.path + "/nccl-Kept00";
  const int fd = opened(kept);
  const int other = opened(folder.path + "/other");
  const int unlinked = opened(folder.path + "/nccl-Gone00");
  fs::remove(folder.path + "/nccl-Gone00");
  const auto segments = probe::nccl_segments_of(::getpid(), folder.path);
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].path == kept);
  probe::remove_unused(segments);
  CHECK(fs::exists(kept));  // we have it ourselves
  ::close(fd);
  probe::remove_unused(segments);
  CHECK_FALSE(fs::exists(kept));
  ::close(other);
  ::close(unlinked);
}

TEST_CASE("shared segments: another file of the same name stays") {
  const Folder folder;
  const std::string path = folder.path + "/nccl-Reused";
  const int fd = opened(path);
  const auto segments = probe::nccl_segments_of(::getpid(), folder.path);
  fs::rename(path, folder.path + "/elsewhere");
  std::ofstream(path) << "a job's";
  ::close(fd);
  probe::remove_unused(segments);
  CHECK(fs::exists(path));
}

TEST_CASE("shared segments: of a process that is gone there are none") {
  CHECK(probe::nccl_segments_of(1 << 30).empty());
}
