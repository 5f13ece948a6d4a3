// What the hardware of a node could do, as far as its kernel drivers say. Look-ups for the checks
// of switches that turn it off; no judgement.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/gpus.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::checks::env {

// GPUs that talk to each other over NVLink in every server that has them.
inline bool nvlink_model(const Gpu& gpu) {
  constexpr std::string_view kModels[] = {"V100-SXM", "A100-SXM", "A800-SXM", "H100 80GB HBM3",
                                          "H200",     "H20",      "H800",     "B200",
                                          "B300",     "GB200",    "GB300"};
  return std::ranges::any_of(
      kModels, [&](std::string_view model) { return gpu.model.find(model) != std::string::npos; });
}

inline bool has_nvlink(const NodeFacts& node) {
  return node.gpu.known() && node.gpu->gpus.size() > 1 &&
         std::ranges::all_of(node.gpu->gpus, nvlink_model);
}

// Those of a NIC; software RDMA is no loss, and EFA is not NCCL's own to use.
inline bool real_device(const RdmaDevice& device) {
  constexpr std::string_view kOthers[] = {"rdma_rxe", "rxe", "siw", "efa"};
  return std::ranges::find(kOthers, device.driver) == std::end(kOthers);
}

// Active ports that carry more than the cloud's ordinary NIC, which has an RDMA device as well.
inline bool fabric_port(const RdmaPort& port) {
  constexpr double kFastGbps = 100;
  if (port.state != "ACTIVE") return false;
  return port.layer == RdmaLayer::infiniband ||
         (port.layer == RdmaLayer::ethernet && port.rate_gbps.value_or(0) >= kFastGbps);
}

// "mlx5_0, mlx5_1": devices with such a port.
inline std::vector<std::string> fabric_of(const NodeFacts& node) {
  std::vector<std::string> names;
  if (!node.rdma.known()) return names;
  for (const RdmaDevice& device : node.rdma->devices) {
    if (real_device(device) && std::ranges::any_of(device.ports, fabric_port)) {
      names.push_back(device.name);
    }
  }
  return names;
}

inline bool any_infiniband(const NodeFacts& node) {
  return std::ranges::any_of(node.rdma->devices, [](const RdmaDevice& device) {
    return real_device(device) && std::ranges::any_of(device.ports, [](const RdmaPort& port) {
             return port.state == "ACTIVE" && port.layer == RdmaLayer::infiniband;
           });
  });
}

// One fast Ethernet NIC may be the only one; InfiniBand, or several of them, are a fabric.
inline bool has_fabric(const NodeFacts& node) {
  const auto names = fabric_of(node);
  return names.size() > 1 || (names.size() == 1 && any_infiniband(node));
}

inline bool direct_rdma_works(const NodeFacts& node) {
  return has_fabric(node) && node.gpu.known() && !node.gpu->gpus.empty() &&
         (node.gpu->peermem || node.gpu->nvidia_open);
}

}  // namespace distdoctor::checks::env
