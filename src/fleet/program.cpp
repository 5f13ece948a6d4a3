#include "fleet/program.h"

#include "base/fd.h"
#include "machine/helpers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <utility>

namespace distdoctor::fleet {
namespace {

constexpr const char* kSelf = "/proc/self/exe";

Result<std::string> read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return std::unexpected(errno_error("open", path));
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto count = ::read(fd.get(), bytes.data() + done, bytes.size() - done);
    if (count <= 0) return std::unexpected(errno_error("read", path));
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

std::string with_own_helper(std::string program, const std::string& name) {
  for (const auto& path : machine::helper_programs(name)) {
    const auto helper = read_file(path);
    if (helper) return machine::with_helper(std::move(program), name, *helper);
  }
  return program;
}

// Without a helper that is not beside us: that costs a gap there, as it does here.
Result<std::shared_ptr<const std::string>> read_program() {
  DD_TRY(std::string program, read_file(kSelf));
  for (const char* const name : {"gloo_allreduce", "vendor"}) {
    program = with_own_helper(std::move(program), name);
  }
  return std::make_shared<const std::string>(std::move(program));
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
  if (!options.push) return program;
  if (const auto bytes = program_bytes()) program.push_bytes = (*bytes)->size();
  return program;
}

Result<std::shared_ptr<const std::string>> program_bytes() {
  static const auto bytes = read_program();
  return bytes;
}

}  // namespace distdoctor::fleet
