// What the checks of RDMA share: a node's devices beside what NCCL makes of them. Look-ups only.
#pragma once

#include <distdoctor/hcas.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/said.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::checks::rdma {

struct RdmaNode {
  const NodeFacts* node;
  const Prediction* prediction;
  const Rdma* rdma;
  const NcclHcas* hcas;
};

// NCCL's own name for it.
inline std::string port_text(std::string_view device, int port) {
  return fmt::format("{}:{}", device, port);
}

// Whether NCCL could use a port whose state nobody saw, nobody can tell.
inline bool states_seen(const NodeFacts& node, const Rdma& rdma, Judge& judge) {
  for (const RdmaDevice& device : rdma.devices) {
    for (const RdmaPort& port : device.ports) {
      if (!port.state.empty()) continue;
      judge.miss({.node = node.host,
                  .fact = fmt::format("rdma.{}.state", port_text(device.name, port.number)),
                  .why = {Why::failed, "sysfs does not tell it"}});
      return false;
    }
  }
  return true;
}

// The nodes of which all that is known; of the others a gap. None for a job without NCCL.
inline std::vector<RdmaNode> rdma_nodes(const Case& c, Judge& judge) {
  std::vector<RdmaNode> nodes;
  if (c.cluster.job.nccl == Use::no) {
    judge.skip("the job does without NCCL");
    return nodes;
  }
  for (const NodeFacts& node : c.cluster.nodes) {
    const Rdma* rdma = judge.see(node, "rdma", node.rdma);
    const Prediction* prediction = find_prediction(c.cluster, node.host);
    if (rdma == nullptr || !states_seen(node, *rdma, judge)) continue;
    if (prediction == nullptr) {
      judge.miss({node.host, "nccl.hcas", {Why::not_collected, "nothing was predicted"}});
      continue;
    }
    const NcclHcas* hcas = judge.see(node, "nccl.hcas", prediction->hcas);
    if (hcas != nullptr) nodes.push_back({&node, prediction, rdma, hcas});
  }
  return nodes;
}

// Then RDMA has nobody to talk to.
inline bool one_alone(const std::vector<RdmaNode>& nodes, Judge& judge) {
  if (nodes.size() > 1) return false;
  if (!nodes.empty()) judge.skip("one node alone");
  return true;
}

// A finding about NCCL is a notice where the job may do without it.
inline Severity capped(const Case& c, Severity severity) {
  return capped_by_purposes(c.cluster.job, severity, {Purpose::nccl_data});
}

inline bool any_used(const std::vector<RdmaNode>& nodes) {
  return std::ranges::any_of(nodes, [](const RdmaNode& one) { return !one.hcas->used.empty(); });
}

inline bool any_device(const std::vector<RdmaNode>& nodes) {
  return std::ranges::any_of(nodes, [](const RdmaNode& one) { return !one.rdma->devices.empty(); });
}

// Devices are there, and NCCL takes none of them: nothing was judged.
inline bool all_unused(const std::vector<RdmaNode>& nodes, Judge& judge) {
  if (any_used(nodes)) return false;
  if (any_device(nodes)) judge.skip("NCCL uses no RDMA port");
  return true;
}

inline bool uses(const RdmaNode& one, std::string_view device) {
  return std::ranges::find(one.hcas->used, device, &HcaChoice::device) != one.hcas->used.end();
}

// --- ports ---

inline bool active(const RdmaPort& port) {
  return port.state == "ACTIVE" && port.layer != RdmaLayer::other;
}

inline bool in_software(const RdmaDevice& device) {
  return device.driver == "rdma_rxe" || device.driver == "siw";
}

// A port that was bought to carry such data: cloud machines have RoCE-capable Ethernet ports of
// 25 Gb/s and less that nobody means to use so.
inline bool made_for_it(const RdmaDevice& device, const RdmaPort& port) {
  constexpr double kFastGbps = 100;
  if (in_software(device) || port.layer == RdmaLayer::other) return false;
  return port.layer == RdmaLayer::infiniband || port.rate_gbps.value_or(0) >= kFastGbps;
}

inline std::string layer_text(RdmaLayer layer) {
  return layer == RdmaLayer::ethernet ? "RoCE" : "InfiniBand";
}

// What every such port has, and was not seen of this one: a rate, an entry of a table.
inline void miss_of_port(const RdmaNode& one,
                         const HcaChoice& hca,
                         std::string_view what,
                         Judge& judge,
                         std::string why = "none was seen") {
  judge.miss({.node = one.node->host,
              .fact = fmt::format("rdma.{}.{}", port_text(hca.device, hca.port), what),
              .why = {Why::not_collected, std::move(why)}});
}

// To be read by hand: "/sys/class/infiniband/mlx5_0/ports/1/state".
inline std::string port_file(std::string_view device, int port, std::string_view file) {
  return shell_quote(fmt::format("/sys/class/infiniband/{}/ports/{}/{}", device, port, file));
}

// --- containers ---

// "docker", "kubernetes", ...; empty outside of one, or where that is not known.
inline std::string container_of(const NodeFacts& node) {
  return node.identity.known() ? node.identity->container : "";
}

}  // namespace distdoctor::checks::rdma
