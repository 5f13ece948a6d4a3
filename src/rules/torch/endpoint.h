// Who opens torchrun's c10d rendezvous store (torch/distributed/elastic/rendezvous/utils.py and
// c10d_rendezvous_backend.py; torch 1.13 read, 2.x as its own tests describe it).
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/observed.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::rules {

constexpr std::uint16_t kC10dPort = 29400;    // of an endpoint without a port
constexpr std::uint16_t kMasterPort = 29500;  // of torchrun's static rendezvous

struct Endpoint {
  std::string host = {};
  std::uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};
// "host", "host:port", "[v6]:port"; empty is localhost. None for what torchrun refuses, with an
// exception, as a port or a host.
std::optional<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);

// Whether the agent on this node takes the endpoint for its own, and so opens the store: its host
// is "localhost", a loopback address, the own hostname, or an address that the own hostname
// resolves to. Later versions also resolve the endpoint's host and compare addresses, so there are
// nodes where only the version decides: Unknown. The addresses of the links do not matter.
Observed<bool> claims_endpoint(const NodeFacts& node, const std::string& host);

}  // namespace distdoctor::rules
