// A static neighbour entry must have the MAC of the peer that has the address.
#include <distdoctor/quote.h>

#include "paths.h"

namespace distdoctor::checks {
namespace {

struct Wrong {
  const NodeFacts* node;
  const NodeFacts* peer;
  const Neighbour* entry;
  const Link* link;  // of the peer, that has the address
};

// The address of another node, on a link of its own.
std::optional<Wrong> owner_of(const ClusterFacts& cluster,
                              const NodeFacts& node,
                              const Neighbour& entry) {
  for (const NodeFacts& peer : cluster.nodes) {
    if (peer.host == node.host || !peer.links.known()) continue;
    const auto at = find_address(*peer.links, entry.address);
    if (at) return Wrong{.node = &node, .peer = &peer, .entry = &entry, .link = at->link};
  }
  return std::nullopt;
}

// A bridge, bond or VLAN may answer with the MAC of another link of its node.
bool has_mac(const NodeFacts& node, const std::string& mac) {
  return std::ranges::find(*node.links, mac, &Link::mac) != node.links->end();
}

// An entry for a router that hands on is right in its own way: only where nothing comes through.
bool comes_through(const ClusterFacts& cluster, const Wrong& row) {
  bool tried = false;
  for (const PairFacts& pair : cluster.pairs) {
    if (pair.from != row.node->host) continue;
    for (const Dial& dial : pair.dials) {
      if (dial.address != row.entry->address) continue;
      const bool arrived = dial.syn_arrived.known() && *dial.syn_arrived;
      const bool silent =
          dial.outcome == Outcome::timed_out || dial.outcome == Outcome::host_unreachable;
      if (arrived || !silent) return true;
      tried = true;
    }
  }
  return !tried;
}

bool is_wrong(const ClusterFacts& cluster, const Wrong& row) {
  return !row.link->mac.empty() && !has_mac(*row.peer, row.entry->mac) &&
         !comes_through(cluster, row);
}

std::vector<Wrong> wrong_entries(const ClusterFacts& cluster) {
  std::vector<Wrong> all;
  for (const NodeFacts& node : cluster.nodes) {
    if (!node.neighbours.known()) continue;
    for (const Neighbour& entry : *node.neighbours) {
      if (entry.state != "permanent" || entry.mac.empty()) continue;
      const auto row = owner_of(cluster, node, entry);
      if (row && is_wrong(cluster, *row)) all.push_back(*row);
    }
  }
  return all;
}

void report(const Wrong& row, Judge& judge) {
  const std::string address = row.entry->address.text();
  const std::string link = row.entry->interface;
  Finding finding{
      .code = "net-neighbour-wrong",
      .severity = Severity::blocker,
      .certainty = Certainty::proved,
      .symptom = Symptom::hang,
      .subjects = {.nodes = {row.node->host}, .pairs = {{row.node->host, row.peer->host}}},
      .summary =
          fmt::format("{} sends what is for {} ({}) to {}, which is no MAC of {}: a static "
                      "neighbour entry",
                      row.node->host, row.peer->host, address, row.entry->mac, row.peer->host)};
  finding.evidence.push_back(
      {.node = row.node->host,
       .fact = "neighbour " + address,
       .observed = fmt::format("{} permanent on {}; nothing comes through", row.entry->mac, link),
       .expected =
           fmt::format("{}, that of {} on {}", row.link->mac, row.link->name, row.peer->host),
       .command = "ip neigh show " + shell_quote(address)});
  finding.fix.push_back(
      {.node = row.node->host,
       .kind = Fix::Kind::shell,
       .command = fmt::format("ip neigh del {} dev {}", shell_quote(address), shell_quote(link)),
       .text = "as root; the kernel asks for the MAC then. Find who sets it (a script for DR or "
               "EVPN, /etc/ethers), or it comes back"});
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.nodes.size() < 2) return;
  for (const NodeFacts& node : c.cluster.nodes) {
    judge.see(node, "net.neighbours", node.neighbours);
  }
  for (const Wrong& row : wrong_entries(c.cluster)) report(row, judge);
}

constexpr std::string_view kCauses[] = {"net-peer-unreachable", "net-one-way-dropped",
                                        "net-ephemeral-dropped", "rendezvous-port-unreachable",
                                        "rendezvous-port-dropped"};
constexpr Page kPage{
    .meaning =
        "The node has a permanent neighbour (ARP, NDP) entry for a peer's address with a MAC that "
        "the peer does not have: an old card's, or that of a cloned node. Frames go to nobody, and "
        "no ARP request mends it.",
    .confirm = "`ip neigh show ADDRESS` here against `ip link show LINK` on the peer.",
    .fix = "`ip neigh del ADDRESS dev LINK`, and the place that the entry is set from.",
    .verify = "`ip neigh show ADDRESS` prints the peer's MAC and no `PERMANENT`."};
constexpr Code kCodes[] = {{.id = "net-neighbour-wrong",
                            .fault_class = FaultClass::no_route,
                            .worst = Severity::blocker,
                            .title = "A static neighbour entry has the wrong MAC",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_neighbour{.title = "Static neighbour entries fit the peers",
                                 .codes = kCodes,
                                 .run = run,
                                 .needs = Needs::pairs};

}  // namespace distdoctor::checks
