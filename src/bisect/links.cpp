#include "bisect/links.h"

#include <distdoctor/bonds.h>
#include <distdoctor/hcas.h>
#include <distdoctor/views.h>
#include <distdoctor/wire_speeds.h>

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace distdoctor::bisect {
namespace {

// Which part of a link's rate large all-reduces reach on healthy machines, by public figures of
// nccl-tests: 360 of 450 GB/s over NVLink, 15 of 32 over PCIe with peer-to-peer access and about
// half of that by way of shared memory, 360 of 400 by RDMA, 2.7 of 3.1 by TCP.
constexpr double kNvlinkShare = 0.75;
constexpr double kPcieShare = 0.45;
constexpr double kHostMemoryShare = 0.2;
constexpr double kRdmaShare = 0.85;
constexpr double kTcpShare = 0.8;

using Limit = std::optional<LinkLimit>;

// Of two, both needed, the narrower one.
Limit narrower(const Limit& a, const Limit& b) {
  if (!a || !b) return std::nullopt;
  return a->gb_per_s <= b->gb_per_s ? a : b;
}

bool any_transport(const Experiment& run, std::string_view word) {
  return std::ranges::any_of(run.ranks, [&](const RankRun& rank) {
    return std::ranges::any_of(rank.transports, [&](const std::string& transport) {
      return transport.find(word) != std::string::npos;
    });
  });
}

// --- inside a node ---

const NvmlGpu* nvml_gpu(const NodeFacts& node, int device) {
  if (!node.nvml.known()) return nullptr;
  const auto found = std::ranges::find(node.nvml->gpus, device, &NvmlGpu::index);
  return found == node.nvml->gpus.end() ? nullptr : &*found;
}

std::string address_of(const NodeFacts& node, int device) {
  if (const NvmlGpu* gpu = nvml_gpu(node, device)) return gpu->pci;
  const bool listed =
      node.gpu.known() && device >= 0 && static_cast<std::size_t>(device) < node.gpu->gpus.size();
  return listed ? node.gpu->gpus[static_cast<std::size_t>(device)].pci : "";
}

// GB/s of one NVLink in one direction, by compute capability (NVIDIA's architecture papers).
double nvlink_gb_per_s(std::string_view capability) {
  return capability.starts_with("10.") ? 50 : 25;
}

bool all_by_nvlink(const NodeFacts& node, const std::vector<RunPlace>& here) {
  const auto used = [&](int device) {
    return std::ranges::find(here, device, &RunPlace::device) != here.end();
  };
  std::size_t pairs = 0;
  for (const NvmlPair& pair : node.nvml->pairs) {
    if (!used(pair.a) || !used(pair.b)) continue;
    if (!pair.path.starts_with("NV")) return false;
    ++pairs;
  }
  return pairs == here.size() * (here.size() - 1) / 2;
}

// Between GPUs without a switch a ring has only the links of one pair: the fewest of any.
std::optional<int> links_of_a_pair(const NodeFacts& node) {
  std::optional<int> fewest;
  for (const NvmlPair& pair : node.nvml->pairs) {
    const auto count = parse_int<int>(std::string_view(pair.path).substr(2));
    if (count && (!fewest || *count < *fewest)) fewest = count;
  }
  return fewest;
}

Limit by_nvlink(const NodeFacts& node, const std::vector<RunPlace>& here) {
  if (!node.nvml.known() || !all_by_nvlink(node, here)) return std::nullopt;
  Limit limit;
  for (const RunPlace& place : here) {
    const NvmlGpu* gpu = nvml_gpu(node, place.device);
    if (gpu == nullptr) return std::nullopt;
    const int links = std::min(gpu->nvlinks_active, links_of_a_pair(node).value_or(0));
    const double rate = links * nvlink_gb_per_s(gpu->capability);
    if (rate <= 0) return std::nullopt;
    if (limit && limit->gb_per_s <= kNvlinkShare * rate) continue;
    limit = {.gb_per_s = kNvlinkShare * rate,
             .limit = fmt::format("{} NVLinks of GPU {} on {}", links, place.device, node.host)};
  }
  return limit;
}

Limit by_pcie(const NodeFacts& node, const std::vector<RunPlace>& here, double share) {
  if (!node.pci.known()) return std::nullopt;
  Limit limit;
  for (const RunPlace& place : here) {
    const auto device =
        std::ranges::find(node.pci->devices, address_of(node, place.device), &PciDevice::address);
    if (device == node.pci->devices.end()) return std::nullopt;
    const auto rate = pcie_gb_per_s(device->width, device->max_speed_gts);
    if (!rate) return std::nullopt;
    if (limit && limit->gb_per_s <= share * *rate) continue;
    limit = {
        .gb_per_s = share * *rate,
        .limit = fmt::format("PCIe x{} at {:g} GT/s of GPU {} on {}", device->width.value_or(0),
                             device->max_speed_gts.value_or(0), place.device, node.host)};
  }
  return limit;
}

Limit inside(const NodeFacts& node, const std::vector<RunPlace>& here, const Experiment& run) {
  Limit nvlink = by_nvlink(node, here);
  if (nvlink) return nvlink;
  const bool by_host = any_transport(run, "SHM") || !any_transport(run, "P2P");
  return by_pcie(node, here, by_host ? kHostMemoryShare : kPcieShare);
}

// --- between nodes ---

std::optional<double> hca_gb_per_s(const NodeFacts& node, const HcaChoice& hca) {
  if (!node.rdma.known()) return std::nullopt;
  const RdmaPort* port = find_rdma_port(*node.rdma, hca.device, hca.port);
  if (port == nullptr || !port->rate_gbps) return std::nullopt;
  return *port->rate_gbps / 8;
}

// A rank drives one card (or shares it): no more cards than ranks carry data.
Limit by_rdma(const NodeFacts& node, const Prediction& prediction, std::size_t ranks) {
  if (!node.rdma.known() || !prediction.hcas.known()) return std::nullopt;
  std::vector<double> rates;
  for (const HcaChoice& hca : prediction.hcas->used) {
    const auto rate = hca_gb_per_s(node, hca);
    if (!rate) return std::nullopt;
    rates.push_back(*rate);
  }
  if (rates.empty()) return std::nullopt;
  const std::size_t used = std::min(rates.size(), std::max<std::size_t>(ranks, 1));
  // The slowest card holds up its channel, hence all.
  const double slowest = std::ranges::min(rates);
  return LinkLimit{.gb_per_s = kRdmaShare * slowest * static_cast<double>(used),
                   .limit = fmt::format("{} RDMA card{} of {:g} Gb/s on {}", used,
                                        used == 1 ? "" : "s", slowest * 8, node.host),
                   .between_nodes = true};
}

std::vector<std::string> interfaces_of(const Shape& shape, const Prediction& prediction) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<Choice>& choices) {
    for (const Choice& choice : choices) names.push_back(choice.interface);
  };
  if (shape.nccl() && prediction.nccl.known()) add(prediction.nccl->net_socket);
  if (!shape.nccl() && prediction.gloo.known()) add(prediction.gloo->devices);
  return names;
}

// A card that NCCL does not take by itself, and that alone would do better than all that it takes.
Limit by_unused_rdma(const NodeFacts& node, const Shape& shape, const Limit& used) {
  Limit best = used;
  for (const std::string& name : shape.hcas) {
    const bool taken = std::ranges::find(shape.hcas_in_use, name) != shape.hcas_in_use.end();
    const auto rate = taken ? std::nullopt : hca_gb_per_s(node, {.device = name});
    if (!best || !rate || kRdmaShare * *rate <= best->gb_per_s) continue;
    best = {.gb_per_s = kRdmaShare * *rate,
            .limit = fmt::format("{} of {:g} Gb/s on {}", name, *rate * 8, node.host),
            .between_nodes = true};
  }
  return best;
}

// Several interfaces may or may not add up: the fastest alone is the least that can be asked for.
// So may the links of a bond: one connection has one of them.
Limit by_tcp(const NodeFacts& node, const std::vector<std::string>& interfaces) {
  if (!node.links.known()) return std::nullopt;
  Limit limit;
  for (const std::string& name : interfaces) {
    const Link* link = find_link(*node.links, name);
    const auto mbps = link == nullptr ? std::nullopt : one_stream_mbps(*link);
    if (!mbps) return std::nullopt;
    const double rate = *mbps / 8000.0;
    if (limit && limit->gb_per_s >= kTcpShare * rate) continue;
    limit = {.gb_per_s = kTcpShare * rate,
             .limit = fmt::format("{} of {:g} Gb/s on {}", name, *mbps / 1000.0, node.host),
             .between_nodes = true};
  }
  return limit;
}

// What one adapter of Gloo or NCCL adds up over several interfaces is not known.
bool one_interface(const Shape& shape, const Prediction& prediction) {
  return !shape.nccl() || (prediction.nccl.known() && prediction.nccl->net_socket.size() == 1);
}

// As it was measured, where nothing but the wire limits it.
Limit by_measured(const ClusterFacts& cluster, const Shape& shape, const NodeFacts& node) {
  const auto found = node_wire(cluster, node.host, shape.backend);
  if (!found || (!shape.nccl() && found->gb_per_s > kGlooCeiling)) return std::nullopt;
  return LinkLimit{
      .gb_per_s = kTcpShare * found->gb_per_s,
      .limit = fmt::format("TCP from {} to {}, measured: {:.3g} GB/s", found->wire.from->host,
                           found->wire.to->host, found->gb_per_s),
      .between_nodes = true};
}

Limit between(const ClusterFacts& cluster,
              const Shape& shape,
              const NodeFacts& node,
              const Experiment& run) {
  const Prediction* prediction = find_prediction(cluster, node.host);
  if (prediction == nullptr) return std::nullopt;
  const bool predicted = prediction->hcas.known() && !prediction->hcas->used.empty();
  const bool rdma = shape.nccl() && predicted && !any_transport(run, "NET/Socket");
  if (rdma) {
    const std::size_t ranks = on_node(shape.places, node.host).size();
    return by_unused_rdma(node, shape, by_rdma(node, *prediction, ranks));
  }
  const auto interfaces = interfaces_of(shape, *prediction);
  const Limit measured =
      one_interface(shape, *prediction) ? by_measured(cluster, shape, node) : std::nullopt;
  const Limit chosen = measured ? measured : by_tcp(node, interfaces);
  Limit best = chosen;
  for (const Wire& wire : shape.wires) {
    const bool in_use =
        std::ranges::find_first_of(wire.interfaces, interfaces) != wire.interfaces.end();
    if (measured && in_use) continue;
    const Limit its = by_tcp(node, wire.interfaces);
    if (measured && !its) return std::nullopt;  // nobody knows whether it would do better
    if (best && its && its->gb_per_s > best->gb_per_s) best = its;
  }
  return best;
}

}  // namespace

std::optional<double> pcie_gb_per_s(std::optional<int> width, std::optional<double> gts) {
  struct Generation {
    double gts;
    double gb_per_s;  // of one lane, after the line code (PCI-SIG: 8b/10b, then 128b/130b)
  };
  constexpr std::array<Generation, 6> kGenerations = {
      {{2.5, 0.25}, {5, 0.5}, {8, 0.985}, {16, 1.969}, {32, 3.938}, {64, 7.563}}};
  if (!width || !gts) return std::nullopt;
  const auto found = std::ranges::find(kGenerations, *gts, &Generation::gts);
  if (found == kGenerations.end()) return std::nullopt;
  return found->gb_per_s * *width;
}

std::optional<LinkLimit> limit_of(const ClusterFacts& cluster,
                                  const Shape& shape,
                                  const Experiment& run) {
  Limit all;
  bool first = true;
  const auto add = [&](const Limit& limit) {
    all = first ? limit : narrower(all, limit);
    first = false;
  };
  for (const std::string& name : shape.nodes) {
    const NodeFacts* node = find_node(cluster, name);
    if (node == nullptr) return std::nullopt;
    const auto here = on_node(shape.places, name);
    if (shape.nccl() && here.size() > 1) add(inside(*node, here, run));
    if (shape.between_nodes()) add(between(cluster, shape, *node, run));
  }
  return all;
}

}  // namespace distdoctor::bisect
