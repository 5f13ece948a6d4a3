#include "cli/files.h"

#include <distdoctor/exit_code.h>

#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

namespace distdoctor::cli {
namespace {

constexpr std::chrono::milliseconds kLook{20};

// False: the deadline passed first.
bool await(int fd, short events, Deadline by) {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  while (true) {
    const int ready = ::poll(&entry, 1, by.remaining_ms());
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// A FIFO without a writer reads as ended. Once one has been there and gone, POLLHUP stands.
bool awaits_a_writer(int fd) {
  struct stat status{};
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && ::poll(&entry, 1, 0) == 0;
}

Result<std::string> read_all(int fd, const std::string& path, std::size_t limit, Deadline by) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      if (await(fd, POLLIN, by)) continue;
      return failure("read " + path, "nothing came in time");
    }
    if (got < 0) return std::unexpected(errno_error("read", path));
    if (got == 0 && awaits_a_writer(fd)) {
      if (by.expired()) return failure("read " + path, "nobody writes to it");
      std::this_thread::sleep_for(kLook);
      continue;
    }
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > limit) {
      return failure("read " + path, "larger than " + std::to_string(limit >> 20U) + " MiB");
    }
  }
}

Result<void> write_all(int fd, const std::string& path, std::string_view text, Deadline by) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) {
      if (await(fd, POLLOUT, by)) continue;
      return failure("write " + path, "nobody took it in time");
    }
    if (put < 0) return std::unexpected(errno_error("write", path));
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

// A FIFO that nobody reads yet says ENXIO (man 7 fifo).
Result<Fd> open_in_place(const std::string& path, Deadline by) {
  while (true) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd.valid()) return fd;
    if (errno != ENXIO) return std::unexpected(errno_error("open", path));
    if (by.expired()) return failure("open " + path, "nobody reads it");
    std::this_thread::sleep_for(kLook);
  }
}

// A network file system may say only now that there was no room.
Result<void> finish(Fd fd, const std::string& path) {
  if (::fsync(fd.get()) != 0) return std::unexpected(errno_error("sync", path));
  if (::close(fd.release()) != 0) return std::unexpected(errno_error("close", path));
  return {};
}

Result<void> write_draft(const std::string& draft, std::string_view text, Deadline by) {
  Fd fd(::open(draft.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644));
  if (!fd.valid()) return std::unexpected(errno_error("open", draft));
  DD_TRY(write_all(fd.get(), draft, text, by));
  return finish(std::move(fd), draft);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit, Deadline by) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return std::unexpected(errno_error("open", path));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return std::unexpected(errno_error("stat", path));
  if (S_ISDIR(status.st_mode)) return failure("read " + path, "is a directory");
  return read_all(fd.get(), path, limit, by);
}

Result<void> write_file(const std::string& path, std::string_view text, Deadline by) {
  // A pipe or /dev/null is written as it is: a rename would put a file in its place.
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    DD_TRY(const Fd fd, open_in_place(path, by));
    return write_all(fd.get(), path, text, by);
  }
  const std::string draft = path + ".part";
  auto written = write_draft(draft, text, by);
  if (written && ::rename(draft.c_str(), path.c_str()) != 0) {
    written = std::unexpected(errno_error("rename", draft));
  }
  if (!written) ::unlink(draft.c_str());
  return written;
}

int print(std::string_view text, int exit_code) {
  // A pager may be read slowly, for as long as its reader likes.
  const Deadline never = Deadline::after(std::chrono::hours(24));
  const auto written = write_all(STDOUT_FILENO, "standard output", text, never);
  if (written || written.error().errno_value == EPIPE) return exit_code;
  std::cerr << "distdoctor: " << written.error().render() << '\n';
  return kExitUsage;
}

}  // namespace distdoctor::cli
