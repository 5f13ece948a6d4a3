#include "machine/socket_rows.h"

#include "base/text.h"
#include "machine/netlink.h"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace distdoctor::machine {
namespace {

// include/net/tcp_states.h; glibc's enum ends at 11.
constexpr unsigned kNewSynRecv = 12;

TcpState state_of(unsigned state) {
  switch (state) {
    case TCP_ESTABLISHED:
      return TcpState::established;
    case TCP_SYN_SENT:
      return TcpState::syn_sent;
    case TCP_SYN_RECV:
    case kNewSynRecv:
      return TcpState::syn_recv;
    case TCP_FIN_WAIT1:
    case TCP_FIN_WAIT2:
      return TcpState::fin_wait;
    case TCP_TIME_WAIT:
      return TcpState::time_wait;
    case TCP_CLOSE_WAIT:
      return TcpState::close_wait;
    default:
      return TcpState::other;
  }
}

Address address_from(bool v6, const void* bytes) {
  constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  Address address{.v6 = v6};
  std::memcpy(address.bytes.data(), bytes, v6 ? 16 : 4);
  if (!v6 || !std::equal(kMapped.begin(), kMapped.end(), address.bytes.begin())) return address;
  Address plain;
  std::copy_n(address.bytes.begin() + 12, 4, plain.bytes.begin());
  return plain;
}

std::uint16_t port_from(std::uint16_t network_order) {
  return ntohs(network_order);
}

struct Wanted {
  std::uint8_t family;
  unsigned states;  // a bit a state
};

Result<void> dump_sockets(const Wanted& wanted, const TakeMessage& take) {
  inet_diag_req_v2 header{};
  header.sdiag_family = wanted.family;
  header.sdiag_protocol = IPPROTO_TCP;
  header.idiag_states = wanted.states;
  return netlink_ask({.protocol = NETLINK_SOCK_DIAG,
                      .type = SOCK_DIAG_BY_FAMILY,
                      .what = "the TCP sockets",
                      .body = netlink_bytes(header)},
                     take);
}

constexpr unsigned bit(unsigned state) {
  return 1U << state;
}
constexpr unsigned kEveryState = (1U << (kNewSynRecv + 1)) - 1;

Result<void> add_sockets(unsigned states, std::size_t most, Sockets& sockets) {
  std::size_t added = 0;
  for (const auto family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}}) {
    const auto asked = dump_sockets({family, states}, [&](nlmsghdr* message) {
      sockets.truncated = sockets.truncated || added == most;
      if (added == most) return false;
      auto row = decode_socket(message);
      if (!row) return true;
      sockets.rows.push_back(*std::move(row));
      ++added;
      return true;
    });
    if (!asked && family == AF_INET) return std::unexpected(asked.error());
  }
  return {};
}

// "0100007F:1F90": each 32-bit word of the address in the machine's own order.
std::optional<std::pair<Address, std::uint16_t>> parse_end(std::string_view text) {
  const auto colon = text.find(':');
  if (colon != 8 && colon != 32) return std::nullopt;
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < colon / 8; ++i) {
    const auto word = parse_int<std::uint32_t>(text.substr(8 * i, 8), 16);
    if (!word) return std::nullopt;
    words.at(i) = *word;
  }
  const auto port = parse_int<std::uint16_t>(text.substr(colon + 1), 16);
  if (!port) return std::nullopt;
  return std::pair{address_from(colon == 32, words.data()), *port};
}

struct Queues {
  int send = 0;
  int receive = 0;
};
std::optional<Queues> parse_queues(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() != 2) return std::nullopt;
  const auto send = parse_int<std::uint32_t>(parts[0], 16);
  const auto receive = parse_int<std::uint32_t>(parts[1], 16);
  if (!send || !receive) return std::nullopt;
  return Queues{static_cast<int>(*send & 0x7fff'ffffU), static_cast<int>(*receive & 0x7fff'ffffU)};
}

std::optional<SocketRow> parse_proc_tcp_line(std::string_view line) {
  const auto words = split_words(line);
  if (words.size() < 10) return std::nullopt;
  const auto local = parse_end(words[1]);
  const auto remote = parse_end(words[2]);
  const auto state = parse_int<unsigned>(words[3], 16);
  const auto queues = parse_queues(words[4]);
  if (!local || !remote || !state || !queues) return std::nullopt;
  const bool listening = *state == TCP_LISTEN;
  return SocketRow{.listening = listening,
                   .state = state_of(*state),
                   .local = local->first,
                   .local_port = local->second,
                   .remote = remote->first,
                   .remote_port = remote->second,
                   .receive_queue = queues->receive,
                   .send_queue = listening ? 0 : queues->send,
                   .retransmits = parse_int<int>(words[6], 16).value_or(0),
                   .uid = parse_int<int>(words[7]).value_or(0),
                   .inode = parse_int<std::uint64_t>(words[9]).value_or(0)};
}

Result<Sockets> read_proc_sockets(const FileTree& files, std::size_t most) {
  Sockets sockets;
  DD_TRY(const auto v4, files.read("/proc/net/tcp"));
  sockets.rows = parse_proc_tcp(v4);
  const auto v6 = parse_proc_tcp(files.read("/proc/net/tcp6").value_or(""));
  sockets.rows.insert(sockets.rows.end(), v6.begin(), v6.end());
  std::ranges::stable_partition(sockets.rows, &SocketRow::listening);
  const auto listeners =
      static_cast<std::size_t>(std::ranges::count_if(sockets.rows, &SocketRow::listening));
  sockets.truncated = sockets.rows.size() > listeners + most;
  if (sockets.truncated) sockets.rows.resize(listeners + most);
  return sockets;
}

}  // namespace

std::optional<SocketRow> decode_socket(nlmsghdr* message) {
  if (nlmsg_valid_hdr(message, sizeof(inet_diag_msg)) == 0) return std::nullopt;
  const auto* const socket = static_cast<const inet_diag_msg*>(nlmsg_data(message));
  const bool v6 = socket->idiag_family == AF_INET6;
  return SocketRow{.listening = socket->idiag_state == TCP_LISTEN,
                   .state = state_of(socket->idiag_state),
                   .local = address_from(v6, &socket->id.idiag_src),
                   .local_port = port_from(socket->id.idiag_sport),
                   .remote = address_from(v6, &socket->id.idiag_dst),
                   .remote_port = port_from(socket->id.idiag_dport),
                   .receive_queue = static_cast<int>(socket->idiag_rqueue),
                   .send_queue = static_cast<int>(socket->idiag_wqueue),
                   .retransmits = socket->idiag_retrans,
                   .uid = static_cast<int>(socket->idiag_uid),
                   .inode = socket->idiag_inode};
}

std::vector<SocketRow> parse_proc_tcp(std::string_view text) {
  std::vector<SocketRow> rows;
  for (const auto line : split_lines(text)) {
    if (auto row = parse_proc_tcp_line(line)) rows.push_back(*std::move(row));
  }
  return rows;
}

Result<Sockets> ask_sockets(const FileTree& files, std::size_t most) {
  Sockets sockets;
  constexpr unsigned kLast = bit(TCP_TIME_WAIT);
  constexpr unsigned kListening = bit(TCP_LISTEN);
  const auto listeners = add_sockets(kListening, 16 * most, sockets);
  if (!listeners) {
    const auto read = read_proc_sockets(files, most);
    return read ? read : Result<Sockets>(std::unexpected(listeners.error()));
  }
  const auto before = sockets.rows.size();
  DD_TRY(add_sockets(kEveryState & ~kListening & ~kLast, most, sockets));
  const auto room = most - std::min(most, sockets.rows.size() - before);
  DD_TRY(add_sockets(kLast, room, sockets));
  return sockets;
}

}  // namespace distdoctor::machine
