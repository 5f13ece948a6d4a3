// TCP sockets of one network namespace, and who owns them (man 7 sock_diag, man 5 proc).
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/enum_names.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

struct Owner {
  int pid = 0;
  std::string command = {};  // argv joined, secrets masked
  std::string user = {};
  int uid = 0;
  double age_s = 0;
  bool operator==(const Owner&) const = default;
};

struct Listener {
  Address address;  // unspecified: all addresses; an IPv6 one of these may serve IPv4 too
  std::uint16_t port = 0;
  int queued = 0;   // connections waiting for accept() (Recv-Q)
  int backlog = 0;  // their maximum (Send-Q); a SYN to a full queue is dropped in silence
  std::optional<Owner> owner = {};  // none when it cannot be seen: not root, other pid namespace
  bool operator==(const Listener&) const = default;
};

enum class TcpState : std::uint8_t {
  established,
  syn_sent,
  syn_recv,
  fin_wait,
  time_wait,
  close_wait,
  other
};
template <>
struct EnumNames<TcpState> {
  static constexpr std::string_view values[] = {"established", "syn_sent",   "syn_recv", "fin_wait",
                                                "time_wait",   "close_wait", "other"};
};

struct Connection {
  TcpState state = TcpState::other;
  Address local;
  std::uint16_t local_port = 0;
  Address remote;
  std::uint16_t remote_port = 0;
  int retransmits = 0;
  std::optional<Owner> owner = {};
  bool operator==(const Connection&) const = default;
};

struct SocketFacts {
  std::vector<Listener> listeners = {};
  std::vector<Connection> connections = {};  // 4,096 at most
  bool truncated = false;
  bool owners_visible = false;  // all processes of this network namespace could be looked at
  bool operator==(const SocketFacts&) const = default;
};

template <class V, Is<Owner> T>
void fields(V& v, T& x) {
  v("pid", x.pid);
  v("command", x.command);
  v("user", x.user);
  v("uid", x.uid);
  v("age_s", x.age_s);
}
template <class V, Is<Listener> T>
void fields(V& v, T& x) {
  v("address", x.address);
  v("port", x.port);
  v("queued", x.queued);
  v("backlog", x.backlog);
  v("owner", x.owner);
}
template <class V, Is<Connection> T>
void fields(V& v, T& x) {
  v("state", x.state);
  v("local", x.local);
  v("local_port", x.local_port);
  v("remote", x.remote);
  v("remote_port", x.remote_port);
  v("retransmits", x.retransmits);
  v("owner", x.owner);
}
template <class V, Is<SocketFacts> T>
void fields(V& v, T& x) {
  v("listeners", x.listeners);
  v("connections", x.connections);
  v("truncated", x.truncated);
  v("owners_visible", x.owners_visible);
}

}  // namespace distdoctor
