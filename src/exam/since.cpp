#include "exam/since.h"

#include <distdoctor/hcas.h>
#include <distdoctor/views.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::exam {
namespace {

Unknown because(std::string text) {
  return {Why::not_collected, std::move(text)};
}

// "mlx5_0/1"
std::string port_key(const RdmaDevice& device, const RdmaPort& port) {
  return fmt::format("{}/{}", device.name, port.number);
}

void add_ports(const Rdma& then, const Rdma& now, EarlierCounters& earlier) {
  for (const RdmaDevice& device : then.devices) {
    const RdmaDevice* same = find_rdma_device(now, device.name);
    if (same == nullptr || same->node_guid != device.node_guid) continue;
    for (const RdmaPort& port : device.ports) {
      const auto downed = port.counters.find("link_downed");
      if (downed == port.counters.end()) continue;
      earlier.link_downed.emplace(port_key(device, port), downed->second);
    }
  }
}

void add_links(const std::vector<Link>& then,
               const std::vector<Link>& now,
               EarlierCounters& earlier) {
  for (const Link& link : then) {
    const auto same = std::ranges::find(now, link.name, &Link::name);
    if (same == now.end() || same->index != link.index || same->mac != link.mac) continue;
    if (link.carrier_downs) earlier.carrier_downs.emplace(link.name, *link.carrier_downs);
  }
}

// Why the two looks cannot be compared; none: they can.
std::optional<Unknown> apart(const NodeFacts* then, const NodeFacts& now) {
  if (then == nullptr) return because("the earlier facts have no node of this name");
  if (!now.identity.known()) return now.identity.why();
  if (!now.uptime_s.known()) return now.uptime_s.why();
  if (!then->identity.known() || then->identity->boot_id.empty() || !then->uptime_s.known()) {
    return because("the earlier facts do not tell since when the node was up");
  }
  if (then->identity->boot_id != now.identity->boot_id) {
    return because("the node has been started anew since the earlier look");
  }
  if (*then->uptime_s >= *now.uptime_s)
    return because("the earlier facts are not older than these");
  return std::nullopt;
}

Observed<EarlierCounters> earlier_of(const NodeFacts* then, const NodeFacts& now) {
  if (auto why = apart(then, now)) return *std::move(why);
  EarlierCounters earlier{.ago_s = *now.uptime_s - *then->uptime_s};
  if (then->rdma.known() && now.rdma.known()) add_ports(*then->rdma, *now.rdma, earlier);
  if (then->links.known() && now.links.known()) add_links(*then->links, *now.links, earlier);
  if (earlier.link_downed.empty() && earlier.carrier_downs.empty()) {
    return because("the earlier facts count no losses of this node's links");
  }
  return earlier;
}

}  // namespace

void add_earlier(const ClusterFacts& then, ClusterFacts& now) {
  for (NodeFacts& node : now.nodes) {
    if (node.reached) node.earlier = earlier_of(find_node(then, node.host), node);
  }
}

}  // namespace distdoctor::exam
