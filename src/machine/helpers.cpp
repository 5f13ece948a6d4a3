#include "machine/helpers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace distdoctor::machine {
namespace {

constexpr const char* kName = "vendor";
constexpr std::string_view kMark = "distdoctor-helper/1\n";
constexpr unsigned kExecutable = 0x10U;  // MFD_EXEC of Linux 6.3; older kernels refuse the flag

// At the end of the file: the helper's length, and the mark.
constexpr std::size_t kTrailer = sizeof(std::uint64_t) + kMark.size();

bool pushed = false;
Fd from_behind;  // NOLINT(cert-err58-cpp): it does nothing

Result<std::string> read_at(const Fd& file, std::size_t at, std::size_t length) {
  std::string bytes(length, '\0');
  std::size_t done = 0;
  while (done < length) {
    const auto got =
        ::pread(file.get(), bytes.data() + done, length - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::unexpected(errno_error("read", "the program", got < 0 ? errno : EIO));
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

Result<Fd> in_memory(std::string_view bytes) {
  Fd memory(::memfd_create(kName, MFD_CLOEXEC | kExecutable));
  if (!memory.valid() && errno == EINVAL) memory.reset(::memfd_create(kName, MFD_CLOEXEC));
  if (!memory.valid()) return std::unexpected(errno_error("keep in memory", kName));
  while (!bytes.empty()) {
    const auto put = ::write(memory.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return std::unexpected(errno_error("keep in memory", kName));
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  // A file that somebody has open for writing cannot be run.
  const auto path = "/proc/self/fd/" + std::to_string(memory.get());
  Fd readable(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!readable.valid()) return std::unexpected(errno_error("open", path));
  return readable;
}

}  // namespace

std::vector<std::string> helper_programs(const std::string& name) {
  if (pushed) {
    if (!from_behind.valid() || name != kName) return {};
    return {"/proc/self/fd/" + std::to_string(from_behind.get())};
  }
  std::array<char, PATH_MAX> path{};
  const auto length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  const std::string_view program(path.data(), static_cast<std::size_t>(length));
  const std::string folder(program.substr(0, program.rfind('/')));
  return {folder + "/libexec/distdoctor/" + name, folder + "/../libexec/distdoctor/" + name};
}

std::string with_helper(std::string program, std::string_view helper) {
  const std::uint64_t length = helper.size();
  std::array<char, sizeof length> bytes{};
  std::memcpy(bytes.data(), &length, sizeof length);  // both ends run one program: one byte order
  program.append(helper);
  program.append(bytes.data(), bytes.size());
  program.append(kMark);
  return program;
}

Result<Fd> helper_behind(const std::string& program_path) {
  const Fd file(::open(program_path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    return std::unexpected(errno_error("open", program_path));
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  const auto none = failure("find the helper behind " + program_path, "there is none");
  if (size < kTrailer) return none;
  DD_TRY(const std::string trailer, read_at(file, size - kTrailer, kTrailer));
  std::uint64_t length = 0;
  std::memcpy(&length, trailer.data(), sizeof length);
  if (!trailer.ends_with(kMark) || length > size - kTrailer) return none;
  DD_TRY(const std::string helper, read_at(file, size - kTrailer - length, length));
  return in_memory(helper);
}

void trust_only_helper_behind_us() {
  pushed = true;
  if (auto helper = helper_behind("/proc/self/exe")) from_behind = *std::move(helper);
}

}  // namespace distdoctor::machine
