// A node behind address translation reaches the others; to be reached it needs an address that is
// known to them. A container on a bridge network of its own is the common case.
#include "lanes.h"

namespace distdoctor::checks {
namespace {

// A connection of `node` that arrived from an address that is not the node's own.
struct Translation {
  const NodeFacts* by;  // who saw it
  Address source;
  Address seen_as;
};

std::optional<Translation> translated(const NodeFacts& node,
                                      const NodeFacts& by,
                                      const Dial& dial) {
  if (dial.outcome != Outcome::ok || !dial.ours || !dial.source || !dial.seen_as)
    return std::nullopt;
  const Translation seen{&by, *dial.source, *dial.seen_as};
  const bool other = !seen.seen_as.loopback() && has_address(node, seen.source) &&
                     !has_address(node, seen.seen_as);
  return other ? std::optional(seen) : std::nullopt;
}

std::optional<Translation> translation_of(const ClusterFacts& cluster, const NodeFacts& node) {
  for (const PairFacts& pair : cluster.pairs) {
    const NodeFacts* by = find_node(cluster, pair.to);
    if (pair.from != node.host || by == nullptr || by == &node) continue;
    for (const Dial& dial : pair.dials) {
      if (auto seen = translated(node, *by, dial)) return seen;
    }
  }
  return std::nullopt;
}

// Lanes to the node on which nobody gets through, whatever the reason looks like.
LaneReadings closed_to(const ClusterFacts& cluster, const NodeFacts& node) {
  LaneReadings closed;
  for (const PairFacts& pair : cluster.pairs) {
    if (pair.to != node.host) continue;
    for (const Lane& lane : lanes_of(cluster, pair)) {
      LaneReading row = read_lane(cluster, lane);
      if (row.failed.size() == lane.inside.size()) closed.push_back(std::move(row));
    }
  }
  return closed;
}

Evidence seen_from(const NodeFacts& node, const Translation& seen) {
  return {.node = seen.by->host,
          .fact = "source address of " + node.host,
          .observed = fmt::format("{} here, {} there", seen.seen_as.text(), seen.source.text()),
          .expected = "the same at both ends",
          .command = fmt::format("tcpdump -ni any host {}", shell_quote(seen.seen_as.text()))};
}

Fix share_the_network(const NodeFacts& node) {
  return {.node = node.host,
          .kind = Fix::Kind::manual,
          .text = fmt::format(
              "start the {} container of {} with the host's network (docker and podman: `--network "
              "host`; Kubernetes: `hostNetwork: true`, or a pod network that routes between nodes)",
              node.identity->container, node.host)};
}

Fix choose_another(const NodeFacts& node) {
  if (node.world.known() && node.world->platform == "wsl") {
    return {.node = node.host,
            .kind = Fix::Kind::manual,
            .text =
                "in Windows: `networkingMode=mirrored` below `[wsl2]` in %UserProfile%\\"
                ".wslconfig, then `wsl --shutdown`: WSL gets the network of Windows itself"};
  }
  return {.node = node.host,
          .kind = Fix::Kind::manual,
          .text = fmt::format("give {} an address that the others reach without translation, and "
                              "name its interface in NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME",
                              node.host)};
}

void report(const Case& c,
            const NodeFacts& node,
            const Translation& seen,
            const LaneReadings& rows,
            Judge& judge) {
  const bool container = node.identity.known() && !node.identity->container.empty();
  Finding finding =
      finding_about(c, rows, container ? "net-container-bridge" : "net-address-translated");
  finding.certainty = Certainty::proved;
  finding.subjects.nodes = {node.host};
  finding.summary = fmt::format(
      "{} is behind address translation{}: its connections arrive from {}, and {} cannot connect "
      "to {}, which it announces",
      node.host, container ? " (a " + node.identity->container + " container)" : "",
      seen.seen_as.text(), list(hosts_of(rows, &Lane::from)), rows.front().lane.address.text());
  finding.evidence.insert(finding.evidence.begin(), seen_from(node, seen));
  finding.fix = {container ? share_the_network(node) : choose_another(node)};
  conclude(c, rows, std::move(finding), judge);
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  for (const NodeFacts& node : c.cluster.nodes) {
    const LaneReadings rows = closed_to(c.cluster, node);
    if (rows.empty() || judge.see(node, "links", node.links) == nullptr) continue;
    const auto seen = translation_of(c.cluster, node);
    if (seen) report(c, node, *seen, rows, judge);
  }
}

constexpr std::string_view kCauses[] = {"net-peer-unreachable",
                                        "net-no-route",
                                        "net-one-way-dropped",
                                        "net-ephemeral-dropped",
                                        "net-ephemeral-rejected",
                                        "net-nccl-interface-unreachable",
                                        "net-gloo-interface-unreachable",
                                        "rendezvous-port-unreachable",
                                        "rendezvous-port-dropped"};
constexpr std::string_view kVerify =
    "`nc -l 40000` there, and `nc -vz -w 3 ADDRESS 40000` from another node succeeds, ADDRESS "
    "being the one that it announces.";
constexpr std::string_view kConfirm =
    "`ip -br addr` there, against the address that `ss -tn` shows on the other side of one of its "
    "connections.";
constexpr Page kBridgePage{
    .meaning =
        "The node is a container with a network of its own. Its way out is translated to "
        "the host's address, so it reaches the others; but NCCL and Gloo announce the "
        "container's address, and nobody outside of the host can connect to that.",
    .confirm = kConfirm,
    .fix = "Start the container with the host's network (`docker run --network host`).",
    .verify = kVerify};
constexpr Page kTranslatedPage{
    .meaning =
        "Something on the way (a router, a VPN gateway) changes the node's address. Its own "
        "connections work; but NCCL and Gloo announce the address that the node itself has, "
        "and the others cannot connect to that.",
    .confirm = kConfirm,
    .fix =
        "Choose an interface with an address that all nodes reach, or join the nodes by a "
        "network that routes without translation.",
    .verify = kVerify};
constexpr Code kCodes[] = {{.id = "net-container-bridge",
                            .fault_class = FaultClass::container_net_bridge,
                            .worst = Severity::blocker,
                            .title = "A container's own network hides the node from its peers",
                            .causes = kCauses,
                            .page = kBridgePage},
                           {.id = "net-address-translated",
                            .fault_class = FaultClass::vpn_nat,
                            .worst = Severity::blocker,
                            .title = "Address translation hides a node from its peers",
                            .causes = kCauses,
                            .page = kTranslatedPage}};

}  // namespace

extern const Check net_translated{.title = "No address translation between the nodes",
                                  .codes = kCodes,
                                  .run = run,
                                  .needs = Needs::pairs};

}  // namespace distdoctor::checks
