// What became of the messages between two RDMA ports; no judgement.
#pragma once

#include <distdoctor/facts/verbs.h>

#include <algorithm>

namespace distdoctor {

// The first message that did not go through; null: all did, or none was sent.
inline const RdmaMessage* lost_message(const RdmaPath& path) {
  const auto lost = std::ranges::find_if(path.messages, [](const RdmaMessage& message) {
    return !message.arrived || message.status_code != 0;
  });
  return lost == path.messages.end() ? nullptr : &*lost;
}

// Only what went wrong between the ports: an end that could not even be opened is another matter.
inline bool is_broken(const RdmaPath& path) {
  if (path.error.empty()) return lost_message(path) != nullptr;
  return path.error.starts_with("ibv_modify_qp to RT");
}

// Of two rows with the same ports the later one is a second try.
inline bool same_ends(const RdmaPath& a, const RdmaPath& b) {
  return a.from == b.from && a.to == b.to && a.from_device == b.from_device &&
         a.to_device == b.to_device && a.from_port == b.from_port && a.to_port == b.to_port;
}

}  // namespace distdoctor
