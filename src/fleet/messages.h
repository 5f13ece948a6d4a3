// The bodies of frames that are neither requests nor answers of plan.h.
#pragma once

#include <distdoctor/enum_names.h>
#include <distdoctor/facts/host.h>

#include <cstdint>
#include <optional>
#include <string>

namespace distdoctor::fleet {

// The coordinator's first frame; it echoes the nonce of the greeting, so that an agent never
// listens to what was meant for another.
struct CoordinatorHello {
  std::string version = {};
  std::string nonce = {};
  std::optional<int> enter_pid = {};
  bool enter_job = false;  // the namespaces of the node's training process, where it has one
};

// The agent's first frame. Two peers with one boot_id and network namespace are one agent's place.
struct AgentHello {
  std::string version = {};
  std::string boot_id = {};
  std::uint64_t net_namespace = 0;  // inode of /proc/self/ns/net
  Context context = Context::unknown;
  std::string error = {};  // it cannot do what the coordinator's hello asks
};

// Microseconds of CLOCK_REALTIME. The echo is the last beat heard from the other side.
struct Beat {
  std::int64_t sent_us = 0;
  std::optional<std::int64_t> echo_us = {};   // its sent_us
  std::optional<std::int64_t> heard_us = {};  // when it came, by our clock
};

struct Trouble {
  std::string text = {};
};

template <class V, Is<CoordinatorHello> T>
void fields(V& v, T& x) {
  v("version", x.version);
  v("nonce", x.nonce);
  v("enter_pid", x.enter_pid);
  v("enter_job", x.enter_job);
}
template <class V, Is<AgentHello> T>
void fields(V& v, T& x) {
  v("version", x.version);
  v("boot_id", x.boot_id);
  v("net_namespace", x.net_namespace);
  v("context", x.context);
  v("error", x.error);
}
template <class V, Is<Beat> T>
void fields(V& v, T& x) {
  v("sent_us", x.sent_us);
  v("echo_us", x.echo_us);
  v("heard_us", x.heard_us);
}
template <class V, Is<Trouble> T>
void fields(V& v, T& x) {
  v("text", x.text);
}

}  // namespace distdoctor::fleet
