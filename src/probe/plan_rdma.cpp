#include "probe/plan_rdma.h"

#include <distdoctor/untested.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::probe {
namespace {

// The first is one packet; the other is cut by the path's MTU, and long enough to need many.
constexpr std::int64_t kSmall = 64;
constexpr std::int64_t kLarge = std::int64_t{1} << 20;

struct RdmaPeer {
  const NodeFacts* node;
  const std::vector<HcaChoice>* ports;
};

// Other partitions than the first of the table are not tried.
bool in_default_partition(const Prediction& prediction) {
  const Setting* index = find_setting(prediction, "NCCL_IB_PKEY");
  return index == nullptr || index->value.empty() || index->value == "0";
}

std::vector<RdmaPeer> peers_of(const ClusterFacts& cluster, ProbePlan& plan) {
  std::vector<RdmaPeer> peers;
  if (cluster.job.nccl == Use::no) return peers;
  for (const NodeFacts& node : cluster.nodes) {
    const Prediction* prediction = find_prediction(cluster, node.host);
    const bool known = node.reached && prediction != nullptr && prediction->hcas.known();
    if (!known || !node.same_as.empty() || prediction->hcas->used.empty()) continue;
    if (in_default_partition(*prediction)) {
      peers.push_back({&node, &prediction->hcas->used});
    } else {
      plan.left_out.push_back({.node = node.host,
                               .what = std::string(kRdmaTraffic),
                               .why = {Why::not_collected, "NCCL_IB_PKEY chooses a partition"}});
    }
  }
  return peers;
}

// The port of the same rail: that at the same place, or where one list lacks some, of the same
// name. Null: there is none, and ports of different rails need not meet.
const HcaChoice* on_rail_of(const RdmaPeer& from, std::size_t port, const RdmaPeer& to) {
  if (from.ports->size() == to.ports->size()) return &(*to.ports)[port];
  const HcaChoice& wanted = (*from.ports)[port];
  const auto same = std::ranges::find_if(*to.ports, [&](const HcaChoice& one) {
    return one.device == wanted.device && one.port == wanted.port;
  });
  return same == to.ports->end() ? nullptr : &*same;
}

struct Rail {
  std::size_t from;
  std::size_t to;
  const HcaChoice* a;
  const HcaChoice* b;
};

// Each node with the one so many steps on, over the port at this place of its list.
void add_step(const std::vector<RdmaPeer>& peers,
              std::size_t step,
              std::size_t port,
              std::vector<Rail>& rails) {
  const std::size_t n = peers.size();
  const std::size_t starts = 2 * step == n ? step : n;  // half way round both ways meet
  for (std::size_t i = 0; i < starts; ++i) {
    const std::size_t j = (i + step) % n;
    if (port >= peers[i].ports->size()) continue;
    const HcaChoice* b = on_rail_of(peers[i], port, peers[j]);
    if (b != nullptr) rails.push_back({i, j, &(*peers[i].ports)[port], b});
  }
}

// The most telling first: each node with the next one over every rail, then with the one after
// that, and so on for so many steps.
std::vector<Rail> rails_of(const std::vector<RdmaPeer>& peers, std::size_t steps) {
  std::vector<Rail> rails;
  std::size_t most = 0;
  for (const RdmaPeer& peer : peers) most = std::max(most, peer.ports->size());
  for (std::size_t step = 1; step <= std::min(peers.size() / 2, steps); ++step) {
    for (std::size_t port = 0; port < most; ++port) add_step(peers, step, port, rails);
  }
  return rails;
}

std::string name_of(const std::string& host, const HcaChoice& port) {
  return host + "/" + port.device + ":" + std::to_string(port.port);
}

RdmaRequest request_for(const HcaChoice& port, const PlanLimits& limits) {
  return {.device = port.device,
          .port = port.port,
          .gid_index = port.roce ? port.gid_index.value_or(-1) : -1,
          .sizes = {kSmall, kLarge},
          .timeout_ms = limits.rdma_timeout_ms};
}

// None: their ports cannot meet, which is for others to say.
bool can_meet(const HcaChoice& a, const HcaChoice& b) {
  return a.roce == b.roce && (!a.roce || (a.gid_index && b.gid_index));
}

PlannedRdma planned(const RdmaPeer& from,
                    const RdmaPeer& to,
                    const Rail& rail,
                    const PlanLimits& limits) {
  PlannedRdma row{.from = from.node->host,
                  .to = to.node->host,
                  .sender = request_for(*rail.a, limits),
                  .receiver = request_for(*rail.b, limits),
                  .roce = rail.a->roce};
  row.sender.id = row.receiver.id = name_of(row.from, *rail.a) + " -> " + name_of(row.to, *rail.b);
  row.sender.sends = true;
  return row;
}

}  // namespace

void plan_rdma(const ClusterFacts& cluster, const PlanLimits& limits, ProbePlan& plan) {
  const auto peers = peers_of(cluster, plan);
  std::map<std::size_t, int> ends;
  const int most = limits.rdma_ends_per_node;
  const auto steps = static_cast<std::size_t>(most);
  bool all = peers.size() / 2 <= steps;
  for (const Rail& rail : rails_of(peers, steps)) {
    if (!can_meet(*rail.a, *rail.b)) continue;
    if (ends[rail.from] >= most || ends[rail.to] >= most) {
      all = false;
      continue;
    }
    ++ends[rail.from];
    ++ends[rail.to];
    plan.rdma.push_back(planned(peers[rail.from], peers[rail.to], rail, limits));
  }
  if (all) return;
  plan.left_out.push_back({.what = std::string(kRdmaTraffic),
                           .why = {Why::not_collected, "each node has " + std::to_string(most) +
                                                           " connections at most"}});
}

}  // namespace distdoctor::probe
