#include "probe/syn_watch.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace distdoctor::probe {
namespace {

// Accepts TCP segments with SYN, not fragments. The packet begins with the network
// header, since the socket is of type SOCK_DGRAM. IPv6 extension headers are not followed: no
// system sends them with a SYN.
constexpr std::uint32_t kProtocol = static_cast<std::uint32_t>(SKF_AD_OFF) + SKF_AD_PROTOCOL;
constexpr sock_filter kFilter[] = {
    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kProtocol),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV6, 8, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IP, 0, 13),
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 11),
    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 9, 0),  // a later fragment
    BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
    BPF_STMT(BPF_LD | BPF_B | BPF_IND, 13),
    BPF_JUMP(BPF_JMP | BPF_JA, 3, 0, 0),
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 4),
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 40 + 13),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x02),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, 0xffff),
    BPF_STMT(BPF_RET | BPF_K, 0),
};

std::uint16_t u16_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  return static_cast<std::uint16_t>((bytes[at] << 8U) | bytes[at + 1]);
}

std::optional<SeenSyn> parse(std::span<const std::uint8_t> packet) {
  if (packet.empty()) return std::nullopt;
  SeenSyn seen;
  const bool v6 = packet[0] >> 4U == 6;
  const std::size_t header = v6 ? 40 : std::size_t{4} * (packet[0] & 0xfU);
  if (packet.size() < header + 14) return std::nullopt;
  const std::size_t size = v6 ? 16 : 4;
  const std::size_t at = v6 ? 8 : 12;
  seen.source.v6 = seen.destination.v6 = v6;
  std::copy_n(packet.begin() + static_cast<long>(at), size, seen.source.bytes.begin());
  std::copy_n(packet.begin() + static_cast<long>(at + size), size, seen.destination.bytes.begin());
  seen.source_port = u16_at(packet, header);
  seen.port = u16_at(packet, header + 2);
  seen.answer = (packet[header + 13] & 0x10U) != 0;
  return seen;
}

}  // namespace

Result<SynWatch> SynWatch::open() {
  // Protocol 0 first: nothing may come in before the filter stands.
  Fd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return std::unexpected(errno_error("watch the links for", "SYNs"));
  std::array<sock_filter, std::size(kFilter)> filter{};
  std::ranges::copy(kFilter, filter.begin());
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  sockaddr_ll all{};
  all.sll_family = AF_PACKET;
  all.sll_protocol = htons(ETH_P_ALL);
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0 ||
      ::bind(fd.get(), static_cast<const sockaddr*>(static_cast<const void*>(&all)), sizeof all) !=
          0) {
    return std::unexpected(errno_error("watch the links for", "SYNs"));
  }
  return SynWatch(std::move(fd));
}

std::vector<SeenSyn> SynWatch::take() {
  std::vector<SeenSyn> all;
  std::array<std::uint8_t, 128> packet{};
  sockaddr_ll from{};
  socklen_t size = sizeof from;
  ssize_t got = 0;
  while ((got = ::recvfrom(fd_.get(), packet.data(), packet.size(), 0,
                           static_cast<sockaddr*>(static_cast<void*>(&from)), &size)) > 0) {
    auto seen = parse(std::span(packet).first(static_cast<std::size_t>(got)));
    // A frame for another machine, by a wrong neighbour entry or a flooding switch, has not
    // arrived: this node drops it.
    if (seen && from.sll_pkttype != PACKET_OTHERHOST) {
      std::array<char, IF_NAMESIZE> name{};
      const auto index = static_cast<unsigned>(from.sll_ifindex);
      if (::if_indextoname(index, name.data()) != nullptr) seen->interface = name.data();
      seen->outgoing = from.sll_pkttype == PACKET_OUTGOING;
      all.push_back(*std::move(seen));
    }
    size = sizeof from;
  }
  return all;
}

bool SynWatch::lost_some() {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  // Reading sets the counters back to zero.
  if (::getsockopt(fd_.get(), SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) {
    lost_ = lost_ || stats.tp_drops > 0;
  }
  return lost_;
}

}  // namespace distdoctor::probe
