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
#include <optional>
#include <utility>

namespace distdoctor::machine {
namespace {

constexpr std::string_view kMark = "distdoctor-helper/1\n";
constexpr unsigned kExecutable = 0x10U;  // MFD_EXEC of Linux 6.3; older kernels refuse the flag

// Behind each helper: its name, padded with zeros, its length, and the mark.
constexpr std::size_t kNameBytes = 32;
constexpr std::size_t kTrailer = kNameBytes + sizeof(std::uint64_t) + kMark.size();
constexpr std::size_t kMostHelpers = 8;

bool pushed = false;
Helpers from_behind;  // NOLINT(cert-err58-cpp): it does nothing

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

Result<Fd> in_memory(const std::string& name, std::string_view bytes) {
  Fd memory(::memfd_create(name.c_str(), MFD_CLOEXEC | kExecutable));
  if (!memory.valid() && errno == EINVAL) memory.reset(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!memory.valid()) return std::unexpected(errno_error("keep in memory", name));
  while (!bytes.empty()) {
    const auto put = ::write(memory.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return std::unexpected(errno_error("keep in memory", name));
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  // A file that somebody has open for writing cannot be run.
  const auto path = "/proc/self/fd/" + std::to_string(memory.get());
  Fd readable(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!readable.valid()) return std::unexpected(errno_error("open", path));
  return readable;
}

struct Trailer {
  std::string name;
  std::size_t length = 0;
};

// Of the helper that ends at `end`; none: what ends there is the program itself.
Result<std::optional<Trailer>> read_trailer(const Fd& file, std::size_t end) {
  if (end < kTrailer) return std::nullopt;
  DD_TRY(const std::string text, read_at(file, end - kTrailer, kTrailer));
  std::uint64_t length = 0;
  std::memcpy(&length, text.data() + kNameBytes, sizeof length);
  if (!text.ends_with(kMark) || length > end - kTrailer) return std::nullopt;
  const std::string name = text.substr(0, kNameBytes);
  return Trailer{.name = name.substr(0, name.find('\0')), .length = length};
}

}  // namespace

std::vector<std::string> helper_programs(const std::string& name) {
  if (pushed) {
    const auto found = from_behind.find(name);
    if (found == from_behind.end()) return {};
    return {"/proc/self/fd/" + std::to_string(found->second.get())};
  }
  std::array<char, PATH_MAX> path{};
  const auto length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  const std::string_view program(path.data(), static_cast<std::size_t>(length));
  const std::string folder(program.substr(0, program.rfind('/')));
  return {folder + "/libexec/distdoctor/" + name, folder + "/../libexec/distdoctor/" + name};
}

std::string with_helper(std::string program, std::string_view name, std::string_view helper) {
  const std::uint64_t length = helper.size();
  std::array<char, kNameBytes> padded{};
  name.copy(padded.data(), kNameBytes - 1);
  std::array<char, sizeof length> bytes{};
  std::memcpy(bytes.data(), &length, sizeof length);  // both ends run one program: one byte order
  program.append(helper);
  program.append(padded.data(), padded.size());
  program.append(bytes.data(), bytes.size());
  program.append(kMark);
  return program;
}

Result<Helpers> helpers_behind(const std::string& program_path) {
  const Fd file(::open(program_path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    return std::unexpected(errno_error("open", program_path));
  }
  Helpers helpers;
  auto end = static_cast<std::size_t>(status.st_size);
  while (helpers.size() < kMostHelpers) {
    DD_TRY(const auto trailer, read_trailer(file, end));
    if (!trailer) break;
    end -= kTrailer + trailer->length;
    DD_TRY(const std::string bytes, read_at(file, end, trailer->length));
    DD_TRY(Fd memory, in_memory(trailer->name, bytes));
    helpers.try_emplace(trailer->name, std::move(memory));
  }
  return helpers;
}

void trust_only_helpers_behind_us() {
  pushed = true;
  if (auto helpers = helpers_behind("/proc/self/exe")) from_behind = *std::move(helpers);
}

}  // namespace distdoctor::machine
