// Sees the first two packets of TCP connections on the links of this network namespace, before any
// filter for incoming packets and after any for outgoing ones (AF_PACKET, man 7 packet). Needs
// CAP_NET_RAW. It only looks.
#pragma once

#include <distdoctor/address.h>

#include "base/error.h"
#include "base/fd.h"

#include <cstdint>
#include <string>
#include <vector>

namespace distdoctor::probe {

struct SeenSyn {
  Address source = {};
  Address destination = {};
  std::uint16_t source_port = 0;
  std::uint16_t port = 0;
  std::string interface = {};
  bool outgoing = false;
  bool answer = false;  // SYN and ACK: `source` is who was dialled
  bool operator==(const SeenSyn&) const = default;
};

class SynWatch {
 public:
  static Result<SynWatch> open();

  [[nodiscard]] int fd() const { return fd_.get(); }
  // What has come by now; never waits.
  std::vector<SeenSyn> take();
  // Whether the kernel had to leave packets out, since its buffer was full: then a SYN that was
  // not seen proves nothing.
  bool lost_some();

 private:
  explicit SynWatch(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
  bool lost_ = false;
};

}  // namespace distdoctor::probe
