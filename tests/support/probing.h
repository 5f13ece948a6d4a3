// The probes' two ends for tests: a set that listens, requests to it, and a deadline for all.
#pragma once

#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "probe/probe.h"
#include "support/builders.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::testing {

inline Deadline soon() {
  return Deadline::after(std::chrono::seconds(20));
}

// A route is looked up elsewhere; here every answer has the name of the test's only link.
inline probe::Lookups fake_lookups(std::vector<Neighbour> neighbours = {}) {
  return {.route_to = [](const Address& destination) -> Result<RouteAnswer> {
            return RouteAnswer{.interface = destination.loopback() ? "lo" : "eth0"};
          },
          .neighbours = [=]() -> Result<std::vector<Neighbour>> { return neighbours; }};
}

inline ListenRequest listen_request(std::string_view address) {
  return {.id = "set",
          .address = addr(address),
          .spread = 3,
          .nonce = 4711,
          .udp = true,
          .watch_arrivals = true,
          .hold_ms = 20'000};
}

inline Dial dial_one(std::string_view address,
                     std::uint16_t port,
                     std::optional<std::uint64_t> nonce,
                     int timeout_ms = 400) {
  DialRequest request{.timeout_ms = timeout_ms};
  request.targets = {{.address = addr(address), .port = port, .nonce = nonce}};
  return probe::dial(request, fake_lookups(), soon()).dials.at(0);
}

inline Path measure_one(std::string_view address,
                        const ListenAnswer& sinks,
                        int packets,
                        int timeout_ms = 10'000) {
  PathRequest request{.timeout_ms = timeout_ms};
  Address any;
  any.v6 = addr(address).v6;
  request.targets = {{.source = any,
                      .destination = addr(address),
                      .udp_port = sinks.udp_port,
                      .bulk_port = sinks.bulk_port,
                      .nonce = 4711,
                      .loss_packets = packets}};
  return probe::measure_paths(request, fake_lookups(), soon()).paths.at(0);
}

}  // namespace distdoctor::testing
