// Counts our own UDP packets and answers those that measure a path's MTU. It has a thread and a
// large buffer of its own, so that a loss that it reports happened on the way.
#pragma once

#include <distdoctor/address.h>

#include "base/error.h"
#include "base/fd.h"
#include "probe/endpoint.h"
#include "probe/wire.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace distdoctor::probe {

// Packets of one (stream, round), each counted once.
struct Counted {
  std::uint32_t received = 0;
  std::uint32_t missed = 0;  // dropped since the round's first packet because our buffer was full
  bool operator==(const Counted&) const = default;
};

class UdpSink {
 public:
  static Result<std::unique_ptr<UdpSink>> open(const Address& address, std::uint64_t nonce);
  ~UdpSink();
  UdpSink(const UdpSink&) = delete;
  UdpSink& operator=(const UdpSink&) = delete;
  UdpSink(UdpSink&&) = delete;
  UdpSink& operator=(UdpSink&&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  Counted counted(std::uint64_t stream, std::uint8_t round);

 private:
  struct Tally {
    std::vector<bool> seen = {};
    std::uint32_t received = 0;
    std::uint32_t missed_before = 0;
  };

  UdpSink(Fd socket, Fd wake, std::uint64_t nonce);
  void serve();
  void read_all();
  void take(std::string_view bytes, const Endpoint& from);
  void tally(const Packet& packet);

  Fd socket_;
  Fd wake_;  // an eventfd: written to once, at the end
  std::uint16_t port_ = 0;
  std::uint64_t nonce_ = 0;
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint8_t>, Tally> tallies_;
  std::uint32_t missed_ = 0;          // SO_RXQ_OVFL: since the socket was made
  std::uint32_t missed_earlier_ = 0;  // the same before the packet in hand
  std::thread thread_;
};

}  // namespace distdoctor::probe
