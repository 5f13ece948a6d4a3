// Nodes must have addresses of the families in which their peers, and the master, announce theirs.
#include <distdoctor/check.h>

#include "chosen.h"

namespace distdoctor::checks {
namespace {

const char* family_name(bool v6) {
  return v6 ? "IPv6" : "IPv4";
}

// A node that could not even begin to connect to what another one announces.
struct Mute {
  const NodeFacts* node;
  std::string what;  // "NCCL on node0 announces 10.0.0.1"
  Address address;
  Purpose purpose;
};

const char* library_of(Purpose purpose) {
  return purpose == Purpose::gloo ? "Gloo" : "NCCL";
}

// An address that peers of its own family could not reach either (docker's bridge, a VPN, a
// link-local one) is a mistake of the choice: net/nccl_interface, net/gloo_interface.
bool worth_reaching(const Case& c, const std::string& host, const Choice& choice) {
  if (choice.address.loopback() || choice.address.link_local()) return false;
  const NodeFacts* node = find_node(c.cluster, host);
  return node == nullptr || !worthless(c.cluster, *node, choice, true);
}

std::vector<Mute> mutes_to_peers(const Case& c) {
  std::vector<Mute> mutes;
  for (const Prediction& prediction : c.cluster.predicted.nodes) {
    for (const Announced& row : announced(c.cluster.job, prediction)) {
      if (!worth_reaching(c, prediction.node, row.choice)) continue;
      for (const NodeFacts& node : c.cluster.nodes) {
        if (node.host == prediction.node || speaks(node, row.choice.address.v6)) continue;
        mutes.push_back({&node,
                         fmt::format("{} on {} announces {}", library_of(row.purpose),
                                     prediction.node, row.choice.address.text()),
                         row.choice.address, row.purpose});
      }
    }
  }
  return mutes;
}

// For a link-local address any link with one of its own will do, or the one that the zone names.
bool beside_on_its_link(const NodeFacts& node, const Address& address) {
  if (!address.link_local()) return false;
  return std::ranges::any_of(*node.links, [&](const Link& link) {
    return (address.zone.empty() || address.zone == link.name) &&
           std::ranges::any_of(link.addresses, [&](const LinkAddress& row) {
             return row.address.v6 == address.v6 && row.address.link_local();
           });
  });
}

// MASTER_ADDR has addresses, none of them in a family that the node has.
std::vector<Mute> mutes_to_master(const Case& c) {
  std::vector<Mute> mutes;
  if (!c.cluster.predicted.master) return mutes;
  const Master& master = *c.cluster.predicted.master;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (node.host == master.node || master.addresses.empty()) continue;
    const bool meet = std::ranges::any_of(master.addresses, [&](const Address& address) {
      return address.loopback() || speaks(node, address.v6) || beside_on_its_link(node, address);
    });
    if (meet) continue;
    const std::string address = master.addresses.front().text();
    const std::string is = address == master.host ? "" : " is " + address;
    mutes.push_back(
        {&node,
         fmt::format("MASTER_ADDR {}{}", master.host, is.empty() ? " is of that family" : is),
         master.addresses.front(), Purpose::master});
  }
  return mutes;
}

Severity severity_of(const Case& c, const std::vector<Mute>& mutes) {
  std::vector<Purpose> purposes;
  for (const Mute& mute : mutes) purposes.push_back(mute.purpose);
  return capped_by_purposes(c.cluster.job, Severity::blocker, purposes);
}

// A family in which every node has an address.
std::optional<bool> common_family(const Case& c) {
  for (const bool v6 : {false, true}) {
    const bool all = std::ranges::all_of(c.cluster.nodes, [&](const NodeFacts& node) {
      return node.links.known() && speaks(node, v6);
    });
    if (all) return v6;
  }
  return std::nullopt;
}

std::vector<Fix> fixes_for(const Case& c, const std::vector<Mute>& mutes) {
  const auto common = common_family(c);
  const bool nccl = std::ranges::any_of(mutes, [](const Mute& mute) {
    return mute.purpose == Purpose::nccl_bootstrap || mute.purpose == Purpose::nccl_data;
  });
  if (common && nccl) {
    return {{.node = "*",
             .kind = Fix::Kind::env,
             .env = {{"NCCL_SOCKET_FAMILY", *common ? "AF_INET6" : "AF_INET"}},
             .text = fmt::format("every node has an {} address", family_name(*common))}};
  }
  return {
      {.node = mutes.front().node->host,
       .kind = Fix::Kind::manual,
       .text = common
                   ? fmt::format("let the nodes' names lead to their {} addresses, which all "
                                 "of them have",
                                 family_name(*common))
                   : fmt::format("give {} an {} address in the network of its peers",
                                 mutes.front().node->host, family_name(mutes.front().address.v6))}};
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.nodes.size() < 2) return;
  for (const NodeFacts& node : c.cluster.nodes) judge.see(node, "net.links", node.links);
  auto mutes = mutes_to_master(c);
  std::ranges::move(mutes_to_peers(c), std::back_inserter(mutes));
  if (mutes.empty()) return;
  Finding finding{
      .code = "net-address-family",
      .severity = severity_of(c, mutes),
      .certainty = Certainty::proved,
      .symptom = Symptom::hang,
      .summary = fmt::format("{} has no {} address, but {}", mutes.front().node->host,
                             family_name(mutes.front().address.v6), mutes.front().what)};
  for (const Mute& mute : mutes) {
    auto& nodes = finding.subjects.nodes;
    if (std::ranges::find(nodes, mute.node->host) == nodes.end()) nodes.push_back(mute.node->host);
    Evidence row{.node = mute.node->host,
                 .fact = fmt::format("net.{}", mute.address.v6 ? "ipv6" : "ipv4"),
                 .observed = fmt::format("no {} address", family_name(mute.address.v6)),
                 .expected = fmt::format("one: {}", mute.what),
                 .command = fmt::format("ip -{} -br addr", mute.address.v6 ? 6 : 4)};
    if (std::ranges::find(finding.evidence, row) == finding.evidence.end()) {
      finding.evidence.push_back(std::move(row));
    }
  }
  finding.fix = fixes_for(c, mutes);
  judge.report(std::move(finding));
}

constexpr std::string_view kCauses[] = {
    "net-nccl-interface-unreachable", "net-gloo-interface-unreachable",
    "net-peer-unreachable",           "net-no-route",
    "net-ephemeral-dropped",          "rendezvous-port-unreachable"};
constexpr Page kPage{
    .meaning =
        "One node announces an IPv4 address, another one has IPv6 only, or the other way "
        "round: connecting fails with `Network is unreachable`, and Gloo stops over addresses "
        "of different sizes. NCCL takes IPv4 before IPv6 where a node has both.",
    .confirm =
        "`ip -4 -br addr` and `ip -6 -br addr` on every node; `getent ahosts \"$(hostname)\"`.",
    .fix =
        "NCCL_SOCKET_FAMILY=AF_INET or AF_INET6, the one that all nodes have; for Gloo and "
        "MASTER_ADDR let the names lead to that family.",
    .verify = "NCCL_DEBUG=INFO prints `Bootstrap: Using` with one family on all nodes."};
constexpr Code kCodes[] = {{.id = "net-address-family",
                            .fault_class = FaultClass::iface_wrong,
                            .worst = Severity::blocker,
                            .title = "Nodes announce addresses of families that do not meet",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_address_family{.title = "All nodes speak one address family",
                                      .codes = kCodes,
                                      .run = run,
                                      .needs = Needs::pairs};

}  // namespace distdoctor::checks
