#include "probe/drains.h"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using namespace std::chrono_literals;

std::pair<Fd, Fd> connection() {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

// Whether the other end goes away within a generous time.
bool closed(const Fd& fd) {
  pollfd waiting{.fd = fd.get(), .events = POLLIN, .revents = 0};
  char byte = 0;
  return ::poll(&waiting, 1, 20'000) == 1 && ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

bool open(const Fd& fd) {
  char byte = 0;
  return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

TEST_CASE("a drain takes far more than any buffer holds") {
  probe::Drains drains;
  auto [mine, other] = connection();
  drains.take(std::move(other), Deadline::after(60s));
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < 32; ++i) {
    std::size_t sent = 0;
    while (sent < block.size()) {
      const ssize_t now =
          ::send(mine.get(), block.data() + sent, block.size() - sent, MSG_NOSIGNAL);
      REQUIRE(now > 0);
      sent += static_cast<std::size_t>(now);
    }
  }
  CHECK(open(mine));
}

TEST_CASE("a drain ends by its deadline, and all of them when they are told to") {
  probe::Drains drains;
  auto [brief, brief_end] = connection();
  auto [lasting, lasting_end] = connection();
  drains.take(std::move(brief_end), Deadline::after(10ms));
  drains.take(std::move(lasting_end), Deadline::after(600s));
  CHECK(closed(brief));
  CHECK(open(lasting));
  drains.end();
  CHECK(closed(lasting));
}

TEST_CASE("more connections than there may be are closed; a place that is free again is taken") {
  probe::Drains drains;
  std::vector<Fd> mine;
  const auto add = [&] {
    auto [one, other] = connection();
    drains.take(std::move(other), Deadline::after(600s));
    mine.push_back(std::move(one));
  };
  for (std::size_t i = 0; i <= probe::Drains::kMost; ++i) add();
  CHECK(open(mine.front()));
  CHECK(closed(mine.back()));
  ::shutdown(mine.front().get(), SHUT_WR);
  CHECK(closed(mine.front()));
  // Its thread says so just after.
  bool taken = false;
  for (int i = 0; i < 1000 && !taken; ++i) {
    add();
    pollfd waiting{.fd = mine.back().get(), .events = POLLIN, .revents = 0};
    taken = ::poll(&waiting, 1, 5) == 0;
  }
  CHECK(taken);
}

}  // namespace
}  // namespace distdoctor::testing
