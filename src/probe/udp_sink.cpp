#include "probe/udp_sink.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace distdoctor::probe {
namespace {

constexpr int kBufferBytes = 4 << 20;  // some 5,000 small packets
constexpr std::size_t kMostStreams = 4096;
constexpr int kPacketsAtOnce = 4096;  // between two looks at the wake-up call

// The drop counter that came along with a packet, if any has.
void read_overflow(const msghdr& message, std::uint32_t& missed) {
  for (const cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr;
       c = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(c))) {
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
      std::memcpy(&missed, CMSG_DATA(c), sizeof missed);
    }
  }
}

}  // namespace

Result<std::unique_ptr<UdpSink>> UdpSink::open(const Address& address, std::uint64_t nonce) {
  DD_TRY(Fd fd, bound_socket(address, 0, SOCK_DGRAM));
  set_option(fd, SOL_SOCKET, SO_RCVBUF, kBufferBytes);
  set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, kBufferBytes);  // root may exceed rmem_max
  set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return std::unexpected(errno_error("create", "eventfd"));
  return std::unique_ptr<UdpSink>(new UdpSink(std::move(fd), std::move(wake), nonce));
}

UdpSink::UdpSink(Fd socket, Fd wake, std::uint64_t nonce)
    : socket_(std::move(socket)), wake_(std::move(wake)), nonce_(nonce) {
  port_ = own_end(socket_).port();
  thread_ = std::thread([this] { serve(); });
}

UdpSink::~UdpSink() {
  static_cast<void>(::eventfd_write(wake_.get(), 1));
  thread_.join();
}

Counted UdpSink::counted(std::uint64_t stream, std::uint8_t round) {
  const std::lock_guard lock(mutex_);
  const auto found = tallies_.find({stream, round});
  if (found == tallies_.end()) return {};
  return {.received = found->second.received, .missed = missed_ - found->second.missed_before};
}

void UdpSink::serve() {
  std::array<pollfd, 2> waiting = {{{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                                    {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
  while (waiting[1].revents == 0) {
    if (::poll(waiting.data(), waiting.size(), -1) > 0 && waiting[0].revents != 0) read_all();
  }
}

void UdpSink::read_all() {
  std::array<char, 65536> buffer{};
  std::array<char, 64> control{};
  for (int i = 0; i < kPacketsAtOnce; ++i) {
    Endpoint from;
    iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
    msghdr message{};
    message.msg_name = from.room();
    message.msg_namelen = *from.size_room();
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, 0);
    if (got < 0) return;
    const std::lock_guard lock(mutex_);
    missed_earlier_ = missed_;
    read_overflow(message, missed_);
    take({buffer.data(), static_cast<std::size_t>(got)}, from);
  }
}

void UdpSink::take(std::string_view bytes, const Endpoint& from) {
  const auto packet = decode<Packet>(bytes);
  if (!packet || packet->nonce != nonce_) return;
  if (packet->kind == PacketKind::loss) return tally(*packet);
  if (packet->number != bytes.size()) return;
  // Smaller than what it answers, so that nobody can amplify a flood with us.
  const std::string reply = encode(PacketReply{packet->stream, packet->number});
  static_cast<void>(
      ::sendto(socket_.get(), reply.data(), reply.size(), 0, from.get(), from.size()));
}

void UdpSink::tally(const Packet& packet) {
  if (packet.number >= kMostLossPackets) return;
  const auto key = std::pair(packet.stream, packet.round);
  const auto found = tallies_.find(key);
  if (found == tallies_.end() && tallies_.size() >= kMostStreams) return;
  Tally& row = tallies_[key];
  if (found == tallies_.end()) row.missed_before = missed_earlier_;
  if (row.seen.size() <= packet.number) row.seen.resize(packet.number + 1);
  if (row.seen[packet.number]) return;
  row.seen[packet.number] = true;
  ++row.received;
}

}  // namespace distdoctor::probe
