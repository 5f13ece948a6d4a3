// A machine as rows and files: what the doors of an agent answered. Enough to read its facts again
// elsewhere, and small enough to be written by hand.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/enum_names.h>
#include <distdoctor/facts/host.h>
#include <distdoctor/facts/network.h>
#include <distdoctor/facts/sockets.h>
#include <distdoctor/observed.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor::machine {

// A row of sock_diag(7). Addresses of IPv4 in IPv6 (::ffff:10.0.0.1) are given as IPv4.
struct SocketRow {
  bool listening = false;
  TcpState state = TcpState::other;
  Address local = {};
  std::uint16_t local_port = 0;
  Address remote = {};
  std::uint16_t remote_port = 0;
  int receive_queue = 0;  // bytes; of a listener: connections waiting for accept()
  int send_queue = 0;     // bytes; of a listener: its backlog
  int retransmits = 0;
  int uid = 0;
  std::uint64_t inode = 0;  // 0: no process holds it (TIME-WAIT, or not accepted yet)
  bool operator==(const SocketRow&) const = default;
};

struct ChildOutput {
  int exit_code = 0;  // 128 + the signal, as a shell says it, for a killed one
  std::string out = {};
  std::string err = {};
  bool operator==(const ChildOutput&) const = default;
};

struct CapturedFile {
  std::string text = {};
  std::string hex = {};   // of a file that is no UTF-8: all its bytes; then `text` is empty
  std::string link = {};  // of a symbolic link; then the rest is empty
  int error = 0;          // the errno that reading it gave
  std::int64_t size = 0;  // 0: that of the text
  double modified_s = 0;  // since the epoch
  int uid = 0;
  bool in_use = false;  // some process has it open or mapped
  bool operator==(const CapturedFile&) const = default;
};

struct CapturedFileSystem {
  std::int64_t size = 0;
  std::int64_t free = 0;
  bool read_only = false;
  std::int64_t free_for_root = 0;
  std::optional<std::int64_t> files_free = {};
  bool operator==(const CapturedFileSystem&) const = default;
};

struct CapturedMachine {
  std::string hostname = {};
  std::string release = {};  // of the kernel
  int uid = 0;
  double now_s = 0;     // since the epoch
  double uptime_s = 0;  // CLOCK_BOOTTIME
  std::map<std::string, std::string> environment = {};
  std::map<std::string, Limit> limits = {};
  Observed<std::vector<Link>> links = {};  // as netlink tells them: no speed, no RDMA device
  Observed<std::vector<Route>> routes = {};
  Observed<std::vector<PolicyRule>> rules = {};
  Observed<std::vector<Neighbour>> neighbours = {};
  Observed<std::vector<SocketRow>> sockets = {};
  Observed<std::string> kernel_log = {};              // as Machine::kernel_log
  std::map<std::string, LinkQos> qos = {};            // by link; of others nothing is told
  std::map<std::string, RouteAnswer> routes_to = {};  // "10.0.0.1", "10.0.0.1 from 10.0.0.2"
  std::map<std::string, ChildOutput> children = {};   // by argv, with blanks between
  std::map<std::string, CapturedFile> files = {};     // by absolute path; folders follow from it
  std::map<std::string, CapturedFileSystem> file_systems = {};  // by mount point
  bool operator==(const CapturedMachine&) const = default;
};

template <class V, Is<SocketRow> T>
void fields(V& v, T& x) {
  v("listening", x.listening);
  v("state", x.state);
  v("local", x.local);
  v("local_port", x.local_port);
  v("remote", x.remote);
  v("remote_port", x.remote_port);
  v("receive_queue", x.receive_queue);
  v("send_queue", x.send_queue);
  v("retransmits", x.retransmits);
  v("uid", x.uid);
  v("inode", x.inode);
}
template <class V, Is<ChildOutput> T>
void fields(V& v, T& x) {
  v("exit_code", x.exit_code);
  v("out", x.out);
  v("err", x.err);
}
template <class V, Is<CapturedFile> T>
void fields(V& v, T& x) {
  v("text", x.text);
  v("hex", x.hex);
  v("link", x.link);
  v("error", x.error);
  v("size", x.size);
  v("modified_s", x.modified_s);
  v("uid", x.uid);
  v("in_use", x.in_use);
}
template <class V, Is<CapturedFileSystem> T>
void fields(V& v, T& x) {
  v("size", x.size);
  v("free", x.free);
  v("read_only", x.read_only);
  v("free_for_root", x.free_for_root);
  v("files_free", x.files_free);
}
template <class V, Is<CapturedMachine> T>
void fields(V& v, T& x) {
  v("hostname", x.hostname);
  v("release", x.release);
  v("uid", x.uid);
  v("now_s", x.now_s);
  v("uptime_s", x.uptime_s);
  v("environment", x.environment);
  v("limits", x.limits);
  v("links", x.links);
  v("routes", x.routes);
  v("rules", x.rules);
  v("neighbours", x.neighbours);
  v("sockets", x.sockets);
  v("kernel_log", x.kernel_log);
  v("qos", x.qos);
  v("routes_to", x.routes_to);
  v("children", x.children);
  v("files", x.files);
  v("file_systems", x.file_systems);
}

}  // namespace distdoctor::machine
