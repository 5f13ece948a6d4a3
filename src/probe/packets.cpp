#include "probe/packets.h"

#include "probe/endpoint.h"
#include "probe/size_search.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace distdoctor::probe {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A size counts as lost only after so many tries.
constexpr int kTries = 4;
constexpr milliseconds kLeastPatience{40};
constexpr std::uint32_t kMostPayload = 65'535;
// 40 us a packet, in bursts: far below what any link or a receiver on a busy core takes.
constexpr int kBurst = 10;
constexpr microseconds kBetweenBursts{400};
// What is under way when the last packet has gone.
constexpr milliseconds kSettle{25};

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) < 0) return 0;  // too early after boot: still a number
  return number;
}

}  // namespace

Result<PacketSource> PacketSource::open(const PathTarget& target) {
  const bool v6 = target.destination.v6;
  DD_TRY(Fd fd, target.source.unspecified() ? open_socket(v6, SOCK_DGRAM)
                                            : bound_socket(target.source, 0, SOCK_DGRAM));
  // DF on each packet, and no look at what path MTU was learnt before: we want to see it.
  if (v6) {
    set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set_option(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
  } else {
    set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    set_option(fd, IPPROTO_IP, IP_RECVERR, 1);  // else a full queue of our own would look like loss
  }
  const Endpoint end(target.destination, target.udp_port);
  if (::connect(fd.get(), end.get(), end.size()) != 0) {
    return std::unexpected(errno_error("send UDP to", target.destination.text()));
  }
  return PacketSource(std::move(fd), target, random_number());
}

PacketSource::PacketSource(Fd fd, const PathTarget& target, std::uint64_t stream)
    : fd_(std::move(fd)),
      nonce_(target.nonce),
      stream_(stream),
      headers_(target.destination.v6 ? 48 : 28) {}

void PacketSource::send_size(int size) {
  const auto payload = static_cast<std::uint32_t>(size - headers_);
  std::string bytes = encode(
      Packet{.kind = PacketKind::size, .nonce = nonce_, .stream = stream_, .number = payload});
  bytes.resize(payload);
  static_cast<void>(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

// Sizes that came, until `largest` has or time is over.
std::set<int> PacketSource::replies(Deadline deadline, int largest) {
  std::set<int> sizes;
  std::array<char, 64> buffer{};
  // A sink that never stops talking keeps poll(2) ready past any deadline.
  while (!sizes.contains(largest) && !deadline.expired()) {
    pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, deadline.remaining_ms()) <= 0) break;
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0) {  // an ICMP error: take it off the queue, or poll would return at once for ever
      static_cast<void>(::recv(fd_.get(), buffer.data(), buffer.size(), MSG_ERRQUEUE));
      continue;
    }
    const auto reply = decode<PacketReply>({buffer.data(), static_cast<std::size_t>(got)});
    if (!reply || reply->stream != stream_ || reply->number > kMostPayload) continue;
    sizes.insert(static_cast<int>(reply->number) + headers_);
  }
  return sizes;
}

std::vector<int> PacketSource::try_sizes(const std::vector<int>& sizes,
                                         nanoseconds patience,
                                         Deadline deadline) {
  std::set<int> passed;
  for (int i = 0; i < kTries && !deadline.expired(); ++i) {
    for (const int size : sizes) {
      if (!passed.contains(size)) send_size(size);
    }
    passed.merge(replies(deadline.capped(patience), sizes.front()));
    if (passed.contains(sizes.front())) break;
  }
  return {passed.begin(), passed.end()};
}

int PacketSource::largest(int link_mtu, nanoseconds round_trip, Deadline deadline) {
  const auto patience = std::max<nanoseconds>(kLeastPatience, 3 * round_trip);
  SizeSearch search(headers_ + static_cast<int>(Packet::kBytes), std::min(link_mtu, 65535));
  for (auto sizes = search.next(); !sizes.empty() && !deadline.expired(); sizes = search.next()) {
    search.came(try_sizes(sizes, patience, deadline));
  }
  return search.passed();
}

int PacketSource::send_round(int packets, std::uint8_t round, Deadline deadline) {
  int sent = 0;
  auto next = Deadline::Clock::now();
  for (int i = 0; i < packets && !deadline.expired(); ++i) {
    const std::string bytes = encode(Packet{.kind = PacketKind::loss,
                                            .round = round,
                                            .nonce = nonce_,
                                            .stream = stream_,
                                            .number = static_cast<std::uint32_t>(i)});
    if (::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) ++sent;
    if (i % kBurst == kBurst - 1) std::this_thread::sleep_until(next += kBetweenBursts);
  }
  return sent;
}

Result<int> PacketSource::received(int sent,
                                   std::uint8_t round,
                                   Stream& control,
                                   Deadline deadline) const {
  int got = 0;
  for (int i = 0; i < 3; ++i) {  // late ones are not lost
    std::this_thread::sleep_for(deadline.capped(kSettle * (i + 1)).remaining());
    DD_TRY(const BulkReply reply, control.count(stream_, round, deadline));
    // Packets that the sink's own buffer could not take were not lost on the way.
    got = static_cast<int>(
        std::min<std::uint64_t>(reply.value + reply.missed, static_cast<std::uint64_t>(sent)));
    if (got == sent) break;
  }
  return got;
}

Result<Loss> PacketSource::loss(int packets, Stream& control, Deadline deadline) {
  packets = std::clamp(packets, 0, static_cast<int>(kMostLossPackets));
  Loss loss;
  loss.sent = send_round(packets, 1, deadline);
  DD_TRY(loss.received, received(loss.sent, 1, control, deadline));
  if (loss.received < loss.sent && loss.received > 0) {
    loss.repeated_sent = send_round(packets, 2, deadline);
    DD_TRY(loss.repeated_received, received(loss.repeated_sent, 2, control, deadline));
  }
  return loss;
}

}  // namespace distdoctor::probe
