// UDP packets of ours to the sink of a listening set: how large they may be, how many are lost.
#pragma once

#include <distdoctor/facts/pairs.h>
#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"
#include "probe/stream.h"

#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

namespace distdoctor::probe {

class PacketSource {
 public:
  static Result<PacketSource> open(const PathTarget& target);

  // The largest IP packet with DF that passes, up to `link_mtu`; 0: not even a tiny one.
  int largest(int link_mtu, std::chrono::nanoseconds round_trip, Deadline deadline);
  // Around a datagram socket that is connected to the target.
  PacketSource(Fd fd, const PathTarget& target, std::uint64_t stream);

  // Two rounds where the first lost any; `control` asks the sink what came.
  Result<Loss> loss(int packets, Stream& control, Deadline deadline);

 private:
  void send_size(int size);
  std::set<int> replies(Deadline deadline, int largest);
  std::vector<int> try_sizes(const std::vector<int>& sizes,
                             std::chrono::nanoseconds patience,
                             Deadline deadline);
  int send_round(int packets, std::uint8_t round, Deadline deadline);
  Result<int> received(int sent, std::uint8_t round, Stream& control, Deadline deadline) const;

  Fd fd_;
  std::uint64_t nonce_;
  std::uint64_t stream_;
  int headers_;  // IP and UDP, bytes
};

}  // namespace distdoctor::probe
