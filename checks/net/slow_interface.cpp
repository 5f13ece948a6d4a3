// The data should go over the fastest network that all nodes share.
#include <distdoctor/check.h>

#include "chosen.h"

namespace distdoctor::checks {
namespace {

constexpr int kWorthwhile = 2;  // times as fast, before a choice counts as a mistake

struct Library {
  const char* name;
  const char* variable;
  Use use;
};

std::vector<Choice> data_choices(const Library& library, const Prediction& prediction) {
  if (library.variable == std::string_view("GLOO_SOCKET_IFNAME")) {
    return prediction.gloo.known() ? prediction.gloo->devices : std::vector<Choice>{};
  }
  return prediction.nccl.known() ? prediction.nccl->net_socket : std::vector<Choice>{};
}

// A node's links that carry the data, with their speeds added up: the libraries stripe.
struct InUse {
  const NodeFacts* node;
  std::vector<std::string> links;
  int mbps;
};

std::optional<InUse> in_use(const Case& c, const Library& library, const NodeFacts& node) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  if (prediction == nullptr || !node.links.known()) return std::nullopt;
  InUse use{.node = &node, .links = {}, .mbps = 0};
  for (const Choice& choice : data_choices(library, *prediction)) {
    const Link* link = find_link(*node.links, choice.interface);
    if (link == nullptr || !link->speed_mbps) return std::nullopt;
    use.links.push_back(link->name);
    use.mbps += *link->speed_mbps;
  }
  if (use.links.empty()) return std::nullopt;
  return use;
}

// Nobody who tried the address failed.
bool not_refuted(const ClusterFacts& cluster, const NodeFacts& node, const Address& address) {
  return std::ranges::all_of(cluster.nodes, [&](const NodeFacts& other) {
    const auto dials = dials_between(cluster, other.host, node.host, address);
    return dials.empty() || std::ranges::any_of(dials, gets_there);
  });
}

// The node's unused link in that subnet that is worth changing to.
const Link* faster_link(const ClusterFacts& cluster, const InUse& use, const LinkAddress& subnet) {
  for (const Link& link : *use.node->links) {
    const bool idle = std::ranges::find(use.links, link.name) == use.links.end();
    if (!idle || !link.speed_mbps || *link.speed_mbps < kWorthwhile * use.mbps) continue;
    for (const LinkAddress& row : link.addresses) {
      const bool inside =
          row.prefix == subnet.prefix && row.address.shares_prefix(subnet.address, subnet.prefix);
      if (inside && usable(link, row) && not_refuted(cluster, *use.node, row.address)) return &link;
    }
  }
  return nullptr;
}

using Links = std::vector<const Link*>;  // one a node

// The fastest subnet in which every node has such a link.
Links better(const ClusterFacts& cluster, const std::vector<InUse>& uses) {
  Links best;
  const auto slowest = [](const Links& links) {
    return *(*std::ranges::min_element(links, {}, [](const Link* link) {
              return *link->speed_mbps;
            }))->speed_mbps;
  };
  for (const Link& link : *uses.front().node->links) {
    for (const LinkAddress& subnet : link.addresses) {
      Links links;
      for (const InUse& use : uses) links.push_back(faster_link(cluster, use, subnet));
      if (std::ranges::find(links, nullptr) != links.end()) continue;
      if (best.empty() || slowest(links) > slowest(best)) best = links;
    }
  }
  return best;
}

std::string speed_text(int mbps) {
  return mbps % 1000 == 0 ? fmt::format("{} Gb/s", mbps / 1000) : fmt::format("{} Mb/s", mbps);
}

void judge_library(const Case& c, const Library& library, Judge& judge) {
  std::vector<InUse> uses;
  for (const NodeFacts& node : c.cluster.nodes) {
    auto use = in_use(c, library, node);
    if (!use) return;
    uses.push_back(*std::move(use));
  }
  const Links links = better(c.cluster, uses);
  if (links.empty()) return;
  const auto carried_by = [](const InUse& use) {
    return fmt::format("{} ({})", fmt::join(use.links, " and "), speed_text(use.mbps));
  };
  Finding finding{
      .code = "net-slow-interface",
      .severity = capped_by_use(Severity::degraded, library.use),
      .certainty = Certainty::likely,
      .symptom = Symptom::slow,
      .summary = fmt::format("{}'s data goes over {}, though {} ({}) joins all nodes, too",
                             library.name, carried_by(uses.front()), links.front()->name,
                             speed_text(*links.front()->speed_mbps))};
  for (std::size_t i = 0; i < uses.size(); ++i) {
    finding.subjects.nodes.push_back(uses[i].node->host);
    finding.evidence.push_back(
        {.node = uses[i].node->host,
         .fact = "data.link",
         .observed = carried_by(uses[i]),
         .expected = fmt::format("{} ({})", links[i]->name, speed_text(*links[i]->speed_mbps)),
         .command = fmt::format("ethtool {}; ethtool {}", shell_quote(uses[i].links.front()),
                                shell_quote(links[i]->name))});
  }
  finding.fix = set_variable(
      c, library.variable,
      fmt::format("set {} to {}{} on nodes where the link is called so", library.variable,
                  library.variable[0] == 'N' ? "=" : "", links.front()->name));
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.nodes.size() < 2) return;
  bool devices_seen = true;
  for (const NodeFacts& node : c.cluster.nodes) {
    judge.see(node, "net.links", node.links);
    devices_seen = judge.see(node, "devices", node.devices) != nullptr && devices_seen;
  }
  const JobSpec& job = c.cluster.job;
  if (job.nccl != Use::no && devices_seen && !rdma_carries_data(c)) {
    judge_library(c, {"NCCL", "NCCL_SOCKET_IFNAME", job.nccl}, judge);
  }
  if (job.gloo == Use::yes && job.nccl != Use::yes) {
    judge_library(c, {"Gloo", "GLOO_SOCKET_IFNAME", job.gloo}, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "The interface that was chosen is several times slower than another one by which the "
        "same nodes reach each other: training works, but waits for the network.",
    .confirm =
        "`ethtool LINK` shows the speeds; `sar -n DEV 1` or `ip -s link` shows which link "
        "carries the traffic.",
    .fix =
        "Name the faster interface in NCCL_SOCKET_IFNAME (`=eth1`) or GLOO_SOCKET_IFNAME (`eth1`), "
        "on all nodes. `distdoctor env` prints what was checked.",
    .verify = "NCCL_DEBUG=INFO prints `NET/Socket : Using [0]LINK:...` with the faster link."};
constexpr Code kCodes[] = {{.id = "net-slow-interface",
                            .fault_class = FaultClass::nic_speed,
                            .worst = Severity::degraded,
                            .title = "The data goes over a slow link",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check net_slow_interface{
    .title = "The data goes over the fastest common network", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
