// NCCL's segments in /dev/shm (shmutils.cc): named until the other side has mapped them too, so a
// rank that is killed before that leaves them behind.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace distdoctor::probe {

struct SharedSegment {
  std::string path = {};
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const SharedSegment&) const = default;
};
using SharedSegments = std::vector<SharedSegment>;

// Those that have a name and that this process maps or holds open. `folder`: /dev/shm.
SharedSegments nccl_segments_of(pid_t pid, const std::string& folder = "/dev/shm");
// Unlinks those that are still the same files and that no process has.
void remove_unused(const SharedSegments& segments);

}  // namespace distdoctor::probe
