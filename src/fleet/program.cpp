#include "fleet/program.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>

namespace distdoctor::fleet {
namespace {

constexpr const char* kSelf = "/proc/self/exe";

Result<std::shared_ptr<const std::string>> read_program() {
  const Fd fd(::open(kSelf, O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return std::unexpected(errno_error("open", kSelf));
  }
  auto bytes = std::make_shared<std::string>(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes->size()) {
    const auto count = ::read(fd.get(), bytes->data() + done, bytes->size() - done);
    if (count <= 0) return std::unexpected(errno_error("read", kSelf));
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

}  // namespace

std::string own_program() {
  std::array<char, PATH_MAX> path{};
  const auto length = ::readlink(kSelf, path.data(), path.size());
  if (length <= 0) return kSelf;
  const std::string name(path.data(), static_cast<std::size_t>(length));
  struct stat there{};
  struct stat self{};
  const bool same = ::stat(name.c_str(), &there) == 0 && ::stat(kSelf, &self) == 0 &&
                    there.st_ino == self.st_ino && there.st_dev == self.st_dev;
  return same ? name : kSelf;
}

Program remote_program(const LaunchOptions& options) {
  Program program{.path = options.remote_path.empty() ? own_program() : options.remote_path};
  struct stat self{};
  if (options.push && ::stat(kSelf, &self) == 0) {
    program.push_bytes = static_cast<std::size_t>(self.st_size);
  }
  return program;
}

Result<std::shared_ptr<const std::string>> program_bytes() {
  static const auto kBytes = read_program();
  return kBytes;
}

}  // namespace distdoctor::fleet
