#include "segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace distdoctor::sim {

Segment::~Segment() {
  unlink();
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

std::string Segment::create(std::size_t bytes) {
  std::string name = "/dev/shm/nccl-XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return "Error: failed to create shared memory file " + name;
  path_ = name;
  linked_ = true;
  bytes_ = bytes + sizeof(int);
  const int error = ::fallocate(fd, 0, 0, static_cast<off_t>(bytes_)) == 0 ? 0 : errno;
  if (error == 0) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory_ == MAP_FAILED) memory_ = nullptr;
  }
  ::close(fd);
  if (error == 0) return "";
  linked_ = false;  // as NCCL: an empty file is left behind
  return "Error while creating shared memory segment " + path_ + " (size " + std::to_string(bytes) +
         "), error: " + std::strerror(error) + " (" + std::to_string(error) + ")";
}

std::string Segment::attach(const std::string& path, std::size_t bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const int error = errno;
  if (fd >= 0) {
    bytes_ = bytes + sizeof(int);
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory_ == MAP_FAILED) memory_ = nullptr;
    ::close(fd);
    return "";
  }
  return "Error while attaching to shared memory segment " + path + " (size " +
         std::to_string(bytes) + "), error: " + std::strerror(error) + " (" +
         std::to_string(error) + ")";
}

void Segment::unlink() {
  if (linked_) ::unlink(path_.c_str());
  linked_ = false;
}

}  // namespace distdoctor::sim
