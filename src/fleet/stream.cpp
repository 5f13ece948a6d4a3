#include "fleet/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace distdoctor::fleet {
namespace {

constexpr std::size_t kMostUnsent = std::size_t{256} << 20;
constexpr std::size_t kMaxWords = std::size_t{4} << 10;
// Who says more is no longer listened to: others need the processor too.
constexpr std::size_t kMostWordsSeen = std::size_t{1} << 20;

void set_nonblocking(const Fd& fd) {
  if (!fd.valid()) return;
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags >= 0) ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
}

bool try_again(int error) {
  return error == EAGAIN || error == EINTR;
}

}  // namespace

Stream::Stream(Fd in, Fd out, Fd words)
    : in_(std::move(in)),
      out_(std::move(out)),
      words_fd_(std::move(words)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (const Fd* fd : {&in_, &out_, &words_fd_}) set_nonblocking(*fd);
  if (!wake_.valid()) ended_ = errno_error("make", "an eventfd").render();
}

void Stream::post(std::string_view bytes) {
  {
    const std::scoped_lock lock(mutex_);
    posted_ += bytes;
  }
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

void Stream::stop() {
  stopped_ = true;
  post("");
}

void Stream::nudge() {
  nudged_ = true;
  post("");
}

bool Stream::posted_something() {
  std::uint64_t count = 0;
  static_cast<void>(!::read(wake_.get(), &count, sizeof count));
  const std::scoped_lock lock(mutex_);
  if (sending_.empty()) {
    sending_ = std::exchange(posted_, {});
  } else {
    sending_ += std::exchange(posted_, {});
  }
  if (sending_.size() > kMostUnsent) ended_ = "the other side takes no more bytes";
  return !sending_.empty();
}

void Stream::pump(Deadline deadline, bool read) {
  if (stopped_ || !ended_.empty()) return;
  std::array<pollfd, 4> fds = {{
      {.fd = read ? in_.get() : -1, .events = POLLIN, .revents = 0},
      {.fd = sending_.empty() ? -1 : out_.get(), .events = POLLOUT, .revents = 0},
      {.fd = words_fd_.get(), .events = POLLIN, .revents = 0},
      {.fd = wake_.get(), .events = POLLIN, .revents = 0},
  }};
  if (::poll(fds.data(), fds.size(), deadline.remaining_ms()) <= 0) return;
  if (fds[2].revents != 0) drain_words();
  if (fds[3].revents != 0 && posted_something()) write_out();
  if (fds[1].revents != 0) write_out();
  if (fds[0].revents != 0) read_in();
}

void Stream::read_in() {
  std::array<char, 65536> bytes{};
  const auto count = ::read(in_.get(), bytes.data(), bytes.size());
  if (count > 0) {
    received_.append(bytes.data(), static_cast<std::size_t>(count));
  } else if (count == 0) {
    ended_ = "end of file";
  } else if (!try_again(errno)) {
    ended_ = errno_error("read from", "the channel").render();
  }
}

void Stream::write_out() {
  const std::string_view rest = std::string_view(sending_).substr(sent_);
  const auto count = ::write(out_.get(), rest.data(), rest.size());
  if (count > 0) {
    sent_ += static_cast<std::size_t>(count);
  } else if (count < 0 && !try_again(errno)) {
    // What the other side said before it went may still be there to be read.
    sent_ = sending_.size();
    out_.reset();
  }
  if (sent_ < sending_.size()) return;
  sending_.clear();
  sent_ = 0;
}

void Stream::drain_words() {
  std::array<char, 4096> bytes{};
  while (words_fd_.valid()) {
    const auto count = ::read(words_fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && try_again(errno)) return;
    if (count <= 0) {
      words_fd_.reset();
      return;
    }
    words_.append(bytes.data(), static_cast<std::size_t>(count));
    if (words_.size() > kMaxWords) words_.erase(0, words_.size() - kMaxWords);
    words_seen_ += static_cast<std::size_t>(count);
    if (words_seen_ > kMostWordsSeen) words_fd_.reset();  // it gets SIGPIPE: its own affair
  }
}

void Stream::finish() {
  ::shutdown(out_.get(), SHUT_WR);  // where `in` is the same socket; ENOTSOCK for a pipe
  out_.reset();
}

}  // namespace distdoctor::fleet
