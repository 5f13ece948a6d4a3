// Segments in /dev/shm as NCCL's shmutils.cc makes them: named nccl-XXXXXX, fallocated as a whole,
// with a count of users behind the data, unlinked once the other side has it too.
#pragma once

#include <cstddef>
#include <string>

namespace distdoctor::sim {

inline constexpr std::size_t kShmReceive = 9637888;  // LL + LL128 + Simple + control
inline constexpr std::size_t kShmSend = 4096;
inline constexpr std::size_t kProxyPool = 34210176;  // of NCCL 2.28

class Segment {
 public:
  Segment() = default;
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // NCCL's words on failure; empty otherwise.
  std::string create(std::size_t bytes);
  std::string attach(const std::string& path, std::size_t bytes);
  void unlink();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = {};
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  bool linked_ = false;
};

}  // namespace distdoctor::sim
