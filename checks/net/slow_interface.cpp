// The data should go over the fastest network that all nodes share.
#include <distdoctor/check.h>

#include "carried.h"

namespace distdoctor::checks {
namespace {

constexpr int kWorthwhile = 2;  // times as fast, before a choice counts as a mistake

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

void judge_library(const Case& c, const Library& library, Judge& judge) {
  std::vector<InUse> uses;
  for (const NodeFacts& node : c.cluster.nodes) {
    auto use = in_use(c, library, node);
    if (!use) return;
    uses.push_back(*std::move(use));
  }
  const Links links = better(c.cluster, uses);
  if (links.empty()) return;
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
  for (const Library& library : carrying_data(c, judge)) judge_library(c, library, judge);
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

extern const Check net_slow_interface{.title = "The data goes over the fastest common network",
                                      .codes = kCodes,
                                      .run = run,
                                      .needs = Needs::pairs};

}  // namespace distdoctor::checks
