// The ports that NCCL takes on a node, by number and kind, whatever they are called.
#pragma once

#include "chosen.h"

#include <map>

namespace distdoctor::checks::rdma {

struct Rails {
  const RdmaNode* one;
  std::map<RdmaLayer, int> count = {};
  std::map<std::string, int> kinds = {};

  // "8 x 400 Gb/s InfiniBand".
  [[nodiscard]] std::string text() const {
    if (kinds.empty()) return "no port";
    std::vector<std::string> parts;
    for (const auto& [kind, number] : kinds) parts.push_back(fmt::format("{} x {}", number, kind));
    return fmt::format("{}", fmt::join(parts, " and "));
  }
};

enum class Rates : std::uint8_t { counted, left_out };

inline Rails rails_of(const RdmaNode& one, Rates rates) {
  Rails rails{.one = &one};
  for (const HcaChoice& hca : one.hcas->used) {
    const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
    if (port == nullptr) continue;
    ++rails.count[port->layer];
    const bool tells = rates == Rates::counted && port->rate_gbps;
    const std::string rate = tells ? fmt::format("{} Gb/s ", *port->rate_gbps) : "";
    ++rails.kinds[rate + layer_text(port->layer)];
  }
  return rails;
}

// Where the kernel does not tell a port's rate, it is no slower than the others, nor as fast.
inline Rates rates_of(const std::vector<RdmaNode>& nodes, Judge& judge) {
  Rates rates = Rates::counted;
  for (const RdmaNode& one : nodes) {
    for (const HcaChoice& hca : one.hcas->used) {
      const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
      if (port == nullptr || port->rate_gbps) continue;
      rates = Rates::left_out;
      miss_of_port(one, hca, "rate", judge);
    }
  }
  return rates;
}

}  // namespace distdoctor::checks::rdma
