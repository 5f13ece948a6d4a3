#include "bisect/shape.h"

#include <distdoctor/hcas.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace distdoctor::bisect {
namespace {

template <class T>
void add_once(std::vector<T>& all, const T& one) {
  if (std::ranges::find(all, one) == all.end()) all.push_back(one);
}

std::vector<const NodeFacts*> nodes_of(const ClusterFacts& cluster, const Shape& shape) {
  std::vector<const NodeFacts*> nodes;
  for (const std::string& name : shape.nodes) {
    if (const NodeFacts* node = find_node(cluster, name)) nodes.push_back(node);
  }
  return nodes;
}

// --- inside a node ---

bool has_nvswitch(const Pci& pci) {
  return std::ranges::any_of(pci.devices, [](const PciDevice& device) {
    return device.vendor == 0x10de && device.device_class >> 8U == 0x0680;
  });
}

// A guest may have the GPUs without seeing the switches between them.
bool may_have_nvswitch(const NodeFacts& node) {
  return !node.pci.known() || has_nvswitch(*node.pci) || node.pci->virtual_machine;
}

bool may_have_plugin(const NodeFacts& node, std::string_view kind) {
  return !node.software.known() ||
         std::ranges::find(node.software->plugins, kind, &NcclPlugin::kind) !=
             node.software->plugins.end();
}

// --- between nodes ---

// NCCL takes both link layers, and nothing but active ports (net_ib.cc ncclIbInit).
bool usable(const RdmaDevice& device) {
  return std::ranges::any_of(device.ports, [](const RdmaPort& port) {
    return port.state == "ACTIVE" && port.layer != RdmaLayer::other;
  });
}

std::vector<std::string> hcas_of(const NodeFacts& node) {
  std::vector<std::string> names;
  if (!node.rdma.known()) return names;
  for (const RdmaDevice& device : node.rdma->devices) {
    if (usable(device)) names.push_back(device.name);
  }
  return names;
}

std::vector<std::string> hcas_everywhere(const std::vector<const NodeFacts*>& nodes) {
  std::vector<std::string> common;
  for (const NodeFacts* node : nodes) {
    const auto here = hcas_of(*node);
    if (node == nodes.front()) common = here;
    std::erase_if(common, [&](const std::string& name) {
      return std::ranges::find(here, name) == here.end();
    });
  }
  return common;
}

// Interfaces that lead out of a machine: bridges, tunnels and their kind are no other way.
bool leads_out(const Link& link) {
  constexpr std::array kKinds = {LinkKind::ethernet,   LinkKind::vlan,    LinkKind::bond,
                                 LinkKind::team,       LinkKind::macvlan, LinkKind::ipvlan,
                                 LinkKind::infiniband, LinkKind::veth};
  return link.up && link.running && link.master.empty() &&
         std::ranges::find(kKinds, link.kind) != kKinds.end();
}

const Link* link_within(const NodeFacts& node, const LinkAddress& subnet) {
  if (!node.links.known()) return nullptr;
  for (const Link& link : *node.links) {
    const bool inside = std::ranges::any_of(link.addresses, [&](const LinkAddress& row) {
      return row.prefix == subnet.prefix &&
             row.address.shares_prefix(subnet.address, subnet.prefix);
    });
    if (inside && leads_out(link)) return &link;
  }
  return nullptr;
}

std::optional<Wire> wire_of(const std::vector<const NodeFacts*>& nodes, const LinkAddress& subnet) {
  Wire wire;
  for (const NodeFacts* node : nodes) {
    const Link* link = link_within(*node, subnet);
    if (link == nullptr) return std::nullopt;
    add_once(wire.interfaces, link->name);
  }
  return wire;
}

std::vector<Wire> wires_of(const std::vector<const NodeFacts*>& nodes) {
  std::vector<Wire> wires;
  if (nodes.size() < 2 || !nodes.front()->links.known()) return wires;
  for (const Link& link : *nodes.front()->links) {
    for (const LinkAddress& row : link.addresses) {
      const bool of_use = !row.address.loopback() && !row.address.link_local();
      const auto wire = of_use && leads_out(link) ? wire_of(nodes, row) : std::nullopt;
      if (wire) add_once(wires, *wire);
    }
  }
  return wires;
}

std::vector<Choice> choices_of(const Prediction& node, RunBackend backend) {
  if (backend == RunBackend::nccl) {
    return node.nccl.known() ? node.nccl->net_socket : std::vector<Choice>{};
  }
  return node.gloo.known() ? node.gloo->devices : std::vector<Choice>{};
}

void add_choices(const ClusterFacts& cluster, Shape& shape) {
  for (const std::string& name : shape.nodes) {
    const Prediction* node = find_prediction(cluster, name);
    if (node == nullptr) continue;
    for (const Choice& choice : choices_of(*node, shape.backend)) {
      add_once(shape.interfaces_in_use, choice.interface);
    }
    if (!node->hcas.known()) continue;
    for (const HcaChoice& hca : node->hcas->used) add_once(shape.hcas_in_use, hca.device);
  }
}

// --- the job's own settings ---

// Those that say where things are (interfaces, GIDs, traffic classes) are not among them: without
// them a fabric may not work at all.
constexpr std::array<std::string_view, 27> kWays = {"NCCL_ALGO",
                                                    "NCCL_BUFFSIZE",
                                                    "NCCL_COLLNET_ENABLE",
                                                    "NCCL_CROSS_NIC",
                                                    "NCCL_CUMEM_ENABLE",
                                                    "NCCL_GRAPH_FILE",
                                                    "NCCL_IB_DISABLE",
                                                    "NCCL_IB_QPS_PER_CONNECTION",
                                                    "NCCL_MAX_CTAS",
                                                    "NCCL_MAX_NCHANNELS",
                                                    "NCCL_MIN_CTAS",
                                                    "NCCL_MIN_NCHANNELS",
                                                    "NCCL_NET",
                                                    "NCCL_NET_GDR_LEVEL",
                                                    "NCCL_NET_PLUGIN",
                                                    "NCCL_NTHREADS",
                                                    "NCCL_NSOCKS_PERTHREAD",
                                                    "NCCL_NVLS_ENABLE",
                                                    "NCCL_P2P_DISABLE",
                                                    "NCCL_P2P_LEVEL",
                                                    "NCCL_PROTO",
                                                    "NCCL_PXN_DISABLE",
                                                    "NCCL_SHM_DISABLE",
                                                    "NCCL_SOCKET_NTHREADS",
                                                    "NCCL_TOPO_FILE",
                                                    "NCCL_TUNER_PLUGIN",
                                                    "NCCL_LAUNCH_MODE"};

Switches own_switches(const ClusterFacts& cluster, const Shape& shape) {
  Switches own;
  if (!shape.nccl()) return own;
  for (const std::string& name : shape.nodes) {
    const Prediction* node = find_prediction(cluster, name);
    if (node == nullptr) continue;
    for (const auto& [variable, setting] : node->settings) {
      const bool of_the_way = std::ranges::find(kWays, variable) != kWays.end();
      if (of_the_way && !setting.value.empty()) own[variable] = setting.value;
    }
  }
  return own;
}

}  // namespace

std::vector<RunPlace> on_node(const std::vector<RunPlace>& places, const std::string& node) {
  std::vector<RunPlace> here;
  std::ranges::copy_if(places, std::back_inserter(here),
                       [&](const RunPlace& place) { return place.node == node; });
  return here;
}

std::vector<RunPlace> without(const std::vector<RunPlace>& places,
                              const std::vector<RunPlace>& left_out) {
  std::vector<RunPlace> rest;
  std::ranges::copy_if(places, std::back_inserter(rest), [&](const RunPlace& place) {
    return std::ranges::find(left_out, place) == left_out.end();
  });
  return rest;
}

Shape shape_of(const ClusterFacts& cluster, const Options& options) {
  Shape shape{.backend = options.backend, .places = options.places};
  for (const RunPlace& place : shape.places) add_once(shape.nodes, place.node);
  shape.shared_nodes = shape.nodes.size() < shape.places.size();
  const auto nodes = nodes_of(cluster, shape);
  const auto any = [&](auto of) { return std::ranges::any_of(nodes, of); };
  shape.nvswitch =
      shape.shared_nodes && any([](const NodeFacts* node) { return may_have_nvswitch(*node); });
  shape.net_plugin = any([](const NodeFacts* node) { return may_have_plugin(*node, "net"); });
  shape.tuner_plugin = any([](const NodeFacts* node) { return may_have_plugin(*node, "tuner"); });
  shape.hcas = hcas_everywhere(nodes);
  shape.rdma = any([](const NodeFacts* node) { return !node->rdma.known(); }) ||
               any([](const NodeFacts* node) { return !hcas_of(*node).empty(); }) ||
               any([](const NodeFacts* node) { return has_active_efa(*node); });
  shape.wires = wires_of(nodes);
  shape.own = own_switches(cluster, shape);
  add_choices(cluster, shape);
  return shape;
}

}  // namespace distdoctor::bisect
