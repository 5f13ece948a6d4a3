// RDMA devices as programs see them: what libibverbs opened, and what messages between two of
// them did. The kernel's own view is rdma.h; where the two differ, the user's programs go by this.
#pragma once

#include <distdoctor/enum_names.h>
#include <distdoctor/observed.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

struct VerbsDevice {
  std::string name = {};
  std::string error = {};  // "ibv_open_device: EACCES"; empty: it was opened
  int error_code = 0;      // errno
  // The first step of preparing memory and a queue that failed: "ibv_alloc_pd: ENOMEM",
  // "ibv_reg_mr of 4 MiB: ENOMEM"; empty: all went well, or it was not opened.
  std::string step_error = {};
  int step_error_code = 0;
  std::int64_t registered_bytes = 0;  // the largest block that could be registered, 4 MiB at most
  std::vector<int> active_ports = {};
  bool operator==(const VerbsDevice&) const = default;
};

struct Verbs {
  std::string library = {};  // the path of libibverbs.so.1 that was loaded
  std::string error = {};    // why it was not: dlopen's own words
  std::vector<VerbsDevice> devices = {};
  std::vector<std::string> warnings =
      {};  // what libibverbs said: "no userspace device-specific driver"
  bool operator==(const Verbs&) const = default;
};

// One RC connection between two ports and what was sent through it (InfiniBand specification 9.7).
struct RdmaMessage {
  std::int64_t bytes = 0;
  bool arrived = false;
  // The completion's status in libibverbs' words: "transport retry counter exceeded"; empty: it
  // completed, or none came in time.
  std::string status = {};
  int status_code = 0;  // ibv_wc_status; 12 is RETRY_EXC_ERR
  double ms = 0;
  bool operator==(const RdmaMessage&) const = default;
};

struct RdmaPath {
  std::string from = {};  // nodes
  std::string to = {};
  std::string from_device = {};
  std::string to_device = {};
  int from_port = 1;
  int to_port = 1;
  bool roce = false;
  int from_gid_index = -1;  // of RoCE
  int to_gid_index = -1;
  std::string from_gid = {};
  std::string to_gid = {};
  // A step before any message failed, at `failed_at`: "ibv_modify_qp to RTR: ETIMEDOUT".
  std::string error = {};
  int error_code = 0;
  std::string failed_at = {};              // the node; empty: no step failed
  std::vector<RdmaMessage> messages = {};  // small ones first
  bool operator==(const RdmaPath&) const = default;
};

template <class V, Is<VerbsDevice> T>
void fields(V& v, T& x) {
  v("name", x.name);
  v("error", x.error);
  v("error_code", x.error_code);
  v("step_error", x.step_error);
  v("step_error_code", x.step_error_code);
  v("registered_bytes", x.registered_bytes);
  v("active_ports", x.active_ports);
}
template <class V, Is<Verbs> T>
void fields(V& v, T& x) {
  v("library", x.library);
  v("error", x.error);
  v("devices", x.devices);
  v("warnings", x.warnings);
}
template <class V, Is<RdmaMessage> T>
void fields(V& v, T& x) {
  v("bytes", x.bytes);
  v("arrived", x.arrived);
  v("status", x.status);
  v("status_code", x.status_code);
  v("ms", x.ms);
}
template <class V, Is<RdmaPath> T>
void fields(V& v, T& x) {
  v("from", x.from);
  v("to", x.to);
  v("from_device", x.from_device);
  v("to_device", x.to_device);
  v("from_port", x.from_port);
  v("to_port", x.to_port);
  v("roce", x.roce);
  v("from_gid_index", x.from_gid_index);
  v("to_gid_index", x.to_gid_index);
  v("from_gid", x.from_gid);
  v("to_gid", x.to_gid);
  v("error", x.error);
  v("error_code", x.error_code);
  v("failed_at", x.failed_at);
  v("messages", x.messages);
}

}  // namespace distdoctor
