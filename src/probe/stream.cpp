#include "probe/stream.h"

#include "probe/endpoint.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

namespace distdoctor::probe {
namespace {

constexpr std::string_view kAttempt = "measure path";

std::unexpected<Error> too_late(std::string_view what) {
  return std::unexpected(
      Error{std::string(kAttempt), std::string(what) + ": no answer in time", ETIMEDOUT});
}

bool wait_for(const Fd& fd, short events, Deadline deadline) {
  pollfd waiting{.fd = fd.get(), .events = events, .revents = 0};
  return ::poll(&waiting, 1, deadline.remaining_ms()) > 0;
}

}  // namespace

Result<Stream> Stream::connect(const PathTarget& target, Deadline deadline) {
  DD_TRY(Fd fd, target.source.unspecified() ? open_socket(target.destination.v6, SOCK_STREAM)
                                            : bound_socket(target.source, 0, SOCK_STREAM));
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  const Endpoint end(target.destination, target.bulk_port);
  if (::connect(fd.get(), end.get(), end.size()) != 0 && errno != EINPROGRESS) {
    return std::unexpected(errno_error(kAttempt, "connect"));
  }
  if (!wait_for(fd, POLLOUT, deadline)) return too_late("connect");
  int number = 0;
  socklen_t size = sizeof number;
  static_cast<void>(::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &number, &size));
  if (number != 0) return std::unexpected(errno_error(kAttempt, "connect", number));
  return Stream(std::move(fd), target.nonce);
}

Result<bool> Stream::write(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return std::unexpected(errno_error(kAttempt, "send"));
    } else if (!wait_for(fd_, POLLOUT, deadline)) {
      return too_late("send");
    }
  }
  return true;
}

Result<BulkReply> Stream::read_reply(Deadline deadline) {
  std::string in;
  std::array<char, BulkReply::kBytes> buffer{};
  while (in.size() < BulkReply::kBytes) {
    if (!wait_for(fd_, POLLIN, deadline)) return too_late("reply");
    const ssize_t got = ::recv(fd_.get(), buffer.data(), BulkReply::kBytes - in.size(), 0);
    if (got == 0) return failure(kAttempt, "the other side closed");
    if (got > 0) {
      in.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (errno != EAGAIN && errno != EINTR) {
      return std::unexpected(errno_error(kAttempt, "recv"));
    }
  }
  const auto reply = decode<BulkReply>(in);
  if (!reply) return failure(kAttempt, "somebody else answered");
  return *reply;
}

Result<BulkReply> Stream::ask(const BulkRequest& request, Deadline deadline) {
  DD_TRY(write(encode(request), deadline));
  return read_reply(deadline);
}

Result<BulkReply> Stream::ping(Deadline deadline) {
  return ask({.kind = BulkKind::ping, .nonce = nonce_}, deadline);
}

Result<BulkReply> Stream::send_data(std::uint64_t size, Deadline deadline) {
  DD_TRY(write(encode(BulkRequest{.kind = BulkKind::data, .nonce = nonce_, .number = size}),
               deadline));
  const std::string zeros(std::min<std::uint64_t>(size, 65536), '\0');
  for (std::uint64_t left = size; left > 0;) {
    const auto part = std::min<std::uint64_t>(left, zeros.size());
    DD_TRY(write(std::string_view(zeros).substr(0, part), deadline));
    left -= part;
  }
  return read_reply(deadline);
}

Result<BulkReply> Stream::count(std::uint64_t stream, std::uint8_t round, Deadline deadline) {
  return ask({.kind = BulkKind::count, .round = round, .nonce = nonce_, .number = stream},
             deadline);
}

Result<BulkReply> Stream::pour(std::chrono::milliseconds most, Deadline deadline) {
  const auto number = static_cast<std::uint64_t>(std::max<std::int64_t>(most.count(), 0));
  return ask({.kind = BulkKind::pour, .nonce = nonce_, .number = number}, deadline);
}

std::uint64_t Stream::acknowledged() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  static_cast<void>(::getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &size));
  return info.tcpi_bytes_acked;
}

}  // namespace distdoctor::probe
