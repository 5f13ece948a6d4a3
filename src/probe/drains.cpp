#include "probe/drains.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace distdoctor::probe {
namespace {

constexpr std::size_t kBlock = 128 * 1024;  // as iperf3 reads

// Into memory, not MSG_TRUNC: a collective has to copy its bytes as well.
void drain(const Fd& fd, Deadline until) {
  std::vector<char> block(kBlock);
  while (!until.expired()) {
    const ssize_t got = ::recv(fd.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (got == 0) return;
    if (got > 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return;
    pollfd waiting{.fd = fd.get(), .events = POLLIN, .revents = 0};
    static_cast<void>(::poll(&waiting, 1, until.remaining_ms()));
  }
}

}  // namespace

void Drains::take(Fd connection, Deadline until) {
  std::erase_if(drains_, [](const Drain& drain) { return drain.over.load(); });
  if (drains_.size() >= kMost) return;
  Drain& mine = drains_.emplace_back();
  mine.fd = std::move(connection);
  try {
    mine.thread = std::jthread([&mine, until] {
      drain(mine.fd, until);
      // Who still sends learns that nobody takes it.
      ::shutdown(mine.fd.get(), SHUT_RDWR);
      mine.over = true;
    });
  } catch (const std::system_error&) {  // no more threads here; closed, it tells the sender
    drains_.pop_back();
  }
}

void Drains::end() {
  for (const Drain& drain : drains_) ::shutdown(drain.fd.get(), SHUT_RDWR);
  drains_.clear();
}

}  // namespace distdoctor::probe
