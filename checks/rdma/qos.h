// Which priority the job's RoCE packets have at a port, and what that port does with it.
#pragma once

#include <distdoctor/nccl_number.h>

#include "chosen.h"

#include <iterator>

namespace distdoctor::checks::rdma {

// A RoCE port that NCCL uses, and the link that tells of its priorities.
struct QosPort {
  const RdmaNode* one;
  const RdmaDevice* device;
  const RdmaPort* port;
  const Link* link;
  const LinkQos* told;
  [[nodiscard]] const LinkQos& qos() const { return *told; }
  [[nodiscard]] std::string name() const { return port_text(device->name, port->number); }
};

// Two links of one device that tell would be two ports of it, and which is which is not told. None
// that tells: what is known of it stands at any.
inline const Link* link_with_qos(const std::vector<Link>& links, const std::string& device) {
  std::vector<const Link*> all;
  for (const Link& link : links) {
    if (link.rdma_device == device) all.push_back(&link);
  }
  const auto tells = [](const Link* link) { return link->qos.known(); };
  if (std::ranges::count_if(all, tells) > 1) return nullptr;
  const auto found = std::ranges::find_if(all, tells);
  if (found != all.end()) return *found;
  return all.empty() ? nullptr : all.front();
}

// That a driver tells none is how it is. That it kept us waiting is a gap.
inline void note_late(const NodeFacts& node, const Link& link, Judge& judge) {
  if (link.qos.known() || link.qos.why().kind == Why::unsupported) return;
  judge.see(node, "net." + link.name + ".qos", link.qos);
}

inline std::vector<QosPort> qos_ports(const RdmaNode& one, Judge& judge) {
  std::vector<QosPort> ports;
  const bool roce = std::ranges::any_of(one.hcas->used, &HcaChoice::roce);
  if (!roce || judge.see(*one.node, "net.links", one.node->links) == nullptr) return ports;
  for (const HcaChoice& hca : one.hcas->used) {
    const RdmaDevice* device = find_rdma_device(*one.rdma, hca.device);
    const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
    const Link* link = hca.roce ? link_with_qos(*one.node->links, hca.device) : nullptr;
    if (device == nullptr || port == nullptr || link == nullptr) continue;
    note_late(*one.node, *link, judge);
    if (link->qos.known()) ports.push_back({&one, device, port, link, &*link->qos});
  }
  return ports;
}

// Those of all nodes, where there are two nodes at least.
inline std::vector<QosPort> all_qos_ports(const std::vector<RdmaNode>& nodes, Judge& judge) {
  std::vector<QosPort> all;
  if (one_alone(nodes, judge)) return all;
  for (const RdmaNode& one : nodes)
    std::ranges::move(qos_ports(one, judge), std::back_inserter(all));
  if (all.empty()) judge.skip("no RoCE port in use tells of its priorities");
  return all;
}

// As NCCL reads it; none: not set, or beyond what fits into a packet.
inline std::optional<int> number_in_packet(const Prediction& prediction,
                                           const std::string& name,
                                           int highest) {
  const Setting* setting = find_setting(prediction, name);
  if (setting == nullptr || setting->value.empty()) return std::nullopt;
  const long long value = nccl_number(setting->value);
  return value < 0 || value > highest ? std::nullopt : std::optional(static_cast<int>(value));
}

// What the port forces on all of its packets, else what NCCL asks for, else 0.
inline int traffic_class_of(const QosPort& port) {
  if (port.port->traffic_class) return *port.port->traffic_class;
  return number_in_packet(*port.one->prediction, "NCCL_IB_TC", 255).value_or(0);
}

inline int dscp_of(int traffic_class) {
  return traffic_class / 4;  // the lower two bits are ECN's
}

// The kernel's mlx5 trusts the code point as long as its table has a row, and the tag else
// (en_dcbnl.c, mlx5e_dcbnl_ieee_setapp and _delapp). Of others only what they tell. Empty: unknown.
inline std::string_view trust_of(const QosPort& port) {
  const LinkQos& qos = port.qos();
  if (!qos.trust.empty()) return qos.trust;
  if (!qos.by_dscp.empty()) return "dscp";
  return port.device->driver == "mlx5_core" && qos.pause ? "pcp" : "";
}

// The row of the table; without one mlx5 takes the upper three bits. None: unknown, also where no
// row at all is told, since the driver of MLNX_OFED may keep them to itself.
inline std::optional<int> priority_of_dscp(const QosPort& port, int dscp) {
  const auto& rows = port.qos().by_dscp;
  const auto row = std::ranges::find(rows, dscp, &DscpPriority::dscp);
  if (row == rows.end()) {
    const bool mlx5 = port.device->driver == "mlx5_core" && !rows.empty();
    return mlx5 ? std::optional(dscp / 8) : std::nullopt;
  }
  const auto other = std::ranges::find_if(row, rows.end(), [&](const DscpPriority& one) {
    return one.dscp == dscp && one.priority != row->priority;
  });
  return other == rows.end() ? std::optional(row->priority) : std::nullopt;
}

// A login does not show what the job's own script exports: there only what was said counts.
inline bool knows_setting(const QosPort& port, const char* name) {
  return is_the_jobs_context(port.one->node->context) ||
         find_setting(*port.one->prediction, name) != nullptr;
}

// Of the job's data at this port; none: unknown.
inline std::optional<int> priority_of(const QosPort& port) {
  const auto trust = trust_of(port);
  const bool forced = trust == "dscp" && port.port->traffic_class;
  if (!forced && !knows_setting(port, trust == "dscp" ? "NCCL_IB_TC" : "NCCL_IB_SL")) {
    return std::nullopt;
  }
  if (trust == "dscp") return priority_of_dscp(port, dscp_of(traffic_class_of(port)));
  // How other drivers and cards come from a service level to a priority is not known to us.
  if (trust != "pcp" || port.device->driver != "mlx5_core") return std::nullopt;
  return number_in_packet(*port.one->prediction, "NCCL_IB_SL", 7).value_or(0);
}

inline bool has_bit(int bits, int priority) {
  return (static_cast<unsigned>(bits) >> static_cast<unsigned>(priority) & 1U) != 0;
}

// "3", "3, 4", "none".
inline std::string bits_text(int bits) {
  std::vector<int> on;
  for (int priority = 0; priority < 8; ++priority) {
    if (has_bit(bits, priority)) on.push_back(priority);
  }
  return on.empty() ? "none" : fmt::format("{}", fmt::join(on, ", "));
}

inline std::string see_qos(const Link& link) {
  const std::string name = shell_quote(link.name);
  return fmt::format("mlnx_qos -i {}; dcb pfc show dev {}; dcb app show dev {}", name, name, name);
}

inline std::string class_file(const QosPort& port) {
  return shell_quote(fmt::format("/sys/class/infiniband/{}/tc/{}/traffic_class", port.device->name,
                                 port.port->number));
}

}  // namespace distdoctor::checks::rdma
