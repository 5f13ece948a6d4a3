#include "machine/file_tree.h"

#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>

namespace distdoctor::machine {
namespace {

int openat2_in_root(int root, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<__u64>(flags);
  how.resolve = RESOLVE_IN_ROOT;
  return static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how));
}

// Filters of older container engines answer EPERM to calls that they do not know.
bool lacks_openat2(int errno_value) {
  return errno_value == ENOSYS || errno_value == EPERM;
}

// At most `limit` bytes. /proc gives no size in advance, so it is read until it ends.
Result<std::string> read_up_to(int fd, std::string_view path, std::size_t limit) {
  std::string text;
  std::array<char, 65536> block{};
  while (text.size() < limit) {
    const auto wanted = std::min(block.size(), limit - text.size());
    const auto got = ::read(fd, block.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(errno_error("read", path));
    if (got == 0) break;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  return text;
}

Result<void> only_regular(int fd, std::string_view path) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return std::unexpected(errno_error("stat", path));
  if (S_ISDIR(info.st_mode)) return std::unexpected(errno_error("read", path, EISDIR));
  if (!S_ISREG(info.st_mode)) {
    return failure("read " + std::string(path), "not a regular file");
  }
  return {};
}

// Calls `take(name)` for each entry but "." and "..".
template <class Take>
Result<void> each_entry(Fd folder, std::string_view path, Take take) {
  DIR* const stream = ::fdopendir(folder.get());
  if (stream == nullptr) return std::unexpected(errno_error("list", path));
  static_cast<void>(folder.release());
  const std::unique_ptr<DIR, decltype([](DIR* dir) { ::closedir(dir); })> closing(stream);
  errno = 0;
  std::size_t count = 0;
  while (const dirent* const entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (++count > kMostEntries) return std::unexpected(errno_error("list", path, EFBIG));
    take(entry->d_name);
    errno = 0;
  }
  if (errno != 0) return std::unexpected(errno_error("list", path));
  return {};
}

Result<std::string> link_text(int folder, const char* name, std::string_view path) {
  std::array<char, PATH_MAX> target{};
  const auto length = ::readlinkat(folder, name, target.data(), target.size());
  // Of a descriptor that is no link, the kernel says ENOENT instead of EINVAL.
  if (length < 0 && *name == '\0' && errno == ENOENT) errno = EINVAL;
  if (length < 0) return std::unexpected(errno_error("readlink", path));
  return std::string(target.data(), static_cast<std::size_t>(length));
}

}  // namespace

Result<std::string> FileTree::read(std::string_view path, std::size_t limit) const {
  DD_TRY(auto text, read_head(path, limit + 1));
  if (text.size() > limit) return std::unexpected(errno_error("read", path, EFBIG));
  return text;
}

std::vector<std::string> FileTree::names(std::string_view folder) const {
  return list(folder).value_or(std::vector<std::string>{});
}

std::string FileTree::word(std::string_view path) const {
  const auto text = read(path);
  return text ? std::string(trim(*text)) : "";
}

Result<std::unique_ptr<RootTree>> RootTree::open(const std::string& root) {
  Fd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return std::unexpected(errno_error("open", root));
  return std::unique_ptr<RootTree>(new RootTree(std::move(fd), root == "/"));
}

Result<Fd> RootTree::open_path(std::string_view path, int flags) const {
  const std::string name(path);
  const int all = flags | O_CLOEXEC | ((flags & O_PATH) != 0 ? 0 : O_NONBLOCK | O_NOCTTY);
  Fd fd(openat2_in_root(root_.get(), name.c_str(), all));
  if (!fd.valid() && whole_ && lacks_openat2(errno)) fd.reset(::open(name.c_str(), all));
  if (!fd.valid()) return std::unexpected(errno_error("open", path));
  return fd;
}

Result<std::string> RootTree::read_head(std::string_view path, std::size_t limit) const {
  DD_TRY(const auto fd, open_path(path, O_RDONLY));
  DD_TRY(only_regular(fd.get(), path));
  return read_up_to(fd.get(), path, limit);
}

Result<std::string> RootTree::read_at(std::string_view path,
                                      std::uint64_t offset,
                                      std::size_t limit) const {
  DD_TRY(const auto fd, open_path(path, O_RDONLY));
  DD_TRY(only_regular(fd.get(), path));
  constexpr std::uint64_t kFarthest = std::uint64_t{1} << 62;
  if (offset > kFarthest) return std::string();
  if (::lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
    return std::unexpected(errno_error("seek", path));
  }
  return read_up_to(fd.get(), path, limit);
}

Result<std::vector<std::string>> RootTree::list(std::string_view folder) const {
  DD_TRY(auto fd, open_path(folder, O_RDONLY | O_DIRECTORY));
  std::vector<std::string> names;
  DD_TRY(each_entry(std::move(fd), folder, [&](const char* name) { names.emplace_back(name); }));
  std::ranges::sort(names);
  return names;
}

Result<std::string> RootTree::read_link(std::string_view path) const {
  DD_TRY(const auto fd, open_path(path, O_PATH | O_NOFOLLOW));
  return link_text(fd.get(), "", path);
}

Result<Links> RootTree::links_in(std::string_view folder) const {
  DD_TRY(auto fd, open_path(folder, O_RDONLY | O_DIRECTORY));
  const int number = fd.get();
  Links links;
  DD_TRY(each_entry(std::move(fd), folder, [&](const char* name) {
    if (auto target = link_text(number, name, folder)) links.emplace_back(name, *target);
  }));
  return links;
}

Result<FileInfo> RootTree::info(std::string_view path) const {
  DD_TRY(const auto fd, open_path(path, O_PATH));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return std::unexpected(errno_error("stat", path));
  return FileInfo{.size = info.st_size,
                  .modified_s = static_cast<double>(info.st_mtim.tv_sec) +
                                static_cast<double>(info.st_mtim.tv_nsec) / 1e9,
                  .uid = static_cast<int>(info.st_uid),
                  .directory = S_ISDIR(info.st_mode)};
}

Result<FileSystem> RootTree::file_system(std::string_view path) const {
  DD_TRY(const auto fd, open_path(path, O_PATH));
  struct statvfs about{};
  if (::fstatvfs(fd.get(), &about) != 0) return std::unexpected(errno_error("statvfs", path));
  const auto bytes = [&about](fsblkcnt_t blocks) {
    return static_cast<std::int64_t>(blocks * about.f_frsize);
  };
  return FileSystem{.size = bytes(about.f_blocks),
                    .free = bytes(about.f_bavail),
                    .read_only = (about.f_flag & ST_RDONLY) != 0,
                    .free_for_root = bytes(about.f_bfree),
                    .files_free = about.f_files == 0
                                      ? std::nullopt
                                      : std::optional(static_cast<std::int64_t>(about.f_favail))};
}

Result<bool> RootTree::in_use(std::string_view path) const {
  DD_TRY(const auto fd, open_path(path, O_RDONLY));
  DD_TRY(only_regular(fd.get(), path));
  // Who opens the file meanwhile makes the kernel send this signal, by default SIGIO, which kills.
  ::fcntl(fd.get(), F_SETSIG, SIGURG);
  if (::fcntl(fd.get(), F_SETLEASE, F_WRLCK) != 0) {
    if (errno == EAGAIN || errno == EBUSY) return true;
    return std::unexpected(errno_error("lease", path));
  }
  ::fcntl(fd.get(), F_SETLEASE, F_UNLCK);
  return false;
}

// By /proc/self/fd: kernels before 5.8 know no faccessat2(2) and its AT_EMPTY_PATH.
Result<void> RootTree::may_use(std::string_view path) const {
  DD_TRY(const auto fd, open_path(path, O_PATH));
  const auto same = "/proc/self/fd/" + std::to_string(fd.get());
  if (::access(same.c_str(), R_OK | W_OK) != 0) return std::unexpected(errno_error("use", path));
  return {};
}

Result<void> RootTree::try_open(std::string_view path) const {
  DD_TRY(open_path(path, O_RDWR));
  return {};
}

}  // namespace distdoctor::machine
