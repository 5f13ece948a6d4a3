// No two nodes may have one MAC in one network.
#include <distdoctor/check.h>

#include "chosen.h"

#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

struct Twins {
  const NodeFacts* one;
  const NodeFacts* other;
  const Link* link;    // of `one`
  const Link* others;  // of `other`
};

// Containers that share a card by ipvlan share its MAC, and are told apart by address.
bool has_a_mac_of_its_own(const Link& link) {
  return link.running && !link.mac.empty() && link.mac != "00:00:00:00:00:00" &&
         link.kind != LinkKind::loopback && link.kind != LinkKind::ipvlan;
}

bool in_one_subnet(const Link& one, const Link& other) {
  return std::ranges::any_of(one.addresses, [&](const LinkAddress& row) {
    return !row.address.link_local() && row.prefix < row.address.bits() &&
           std::ranges::any_of(
               other.addresses,
               [&](const LinkAddress& theirs) {
                 return theirs.prefix == row.prefix && theirs.address != row.address &&
                        theirs.address.shares_prefix(row.address, row.prefix);
               });
  });
}

using Dials = std::vector<const Dial*>;

// To the other one's addresses on its link.
Dials dials_from(const ClusterFacts& cluster, const NodeFacts& from, const Twins& twins) {
  const NodeFacts& to = &from == twins.one ? *twins.other : *twins.one;
  const Link& link = &from == twins.one ? *twins.others : *twins.link;
  Dials all;
  for (const LinkAddress& row : link.addresses) {
    std::ranges::copy(dials_between(cluster, from.host, to.host, row.address),
                      std::back_inserter(all));
  }
  return all;
}

bool unanswered(const Dial* dial) {
  return dial->outcome == Outcome::timed_out || dial->outcome == Outcome::host_unreachable;
}

// No connection between the two over these links got any answer, and some were tried. A router
// between them (proxy ARP, EVPN) keeps two equal MACs apart.
bool silent(const ClusterFacts& cluster, const Twins& twins) {
  Dials all = dials_from(cluster, *twins.one, twins);
  std::ranges::copy(dials_from(cluster, *twins.other, twins), std::back_inserter(all));
  return std::ranges::any_of(all, unanswered) &&
         std::ranges::none_of(all, [](const Dial* dial) { return dial->outcome == Outcome::ok; });
}

using Places = std::vector<std::pair<const NodeFacts*, const Link*>>;

std::map<std::string, Places> links_by_mac(const ClusterFacts& cluster) {
  std::map<std::string, Places> by_mac;
  for (const NodeFacts& node : cluster.nodes) {
    if (!node.links.known()) continue;
    for (const Link& link : *node.links) {
      if (has_a_mac_of_its_own(link)) by_mac[link.mac].emplace_back(&node, &link);
    }
  }
  return by_mac;
}

bool in_each_others_way(const ClusterFacts& cluster, const Twins& twins) {
  if (twins.one == twins.other || !in_one_subnet(*twins.link, *twins.others)) return false;
  return silent(cluster, twins);
}

std::vector<Twins> twins_in(const ClusterFacts& cluster) {
  std::vector<Twins> all;
  for (const auto& [mac, places] : links_by_mac(cluster)) {
    for (auto one = places.begin(); one != places.end(); ++one) {
      for (auto other = one + 1; other != places.end(); ++other) {
        const Twins twins{one->first, other->first, one->second, other->second};
        if (in_each_others_way(cluster, twins)) all.push_back(twins);
      }
    }
  }
  return all;
}

Evidence mac_of(const NodeFacts& node, const Link& link) {
  return {.node = node.host,
          .fact = fmt::format("net.{}.mac", link.name),
          .observed = link.mac,
          .expected = "one of its own",
          .command = "ip link show dev " + shell_quote(link.name)};
}

void report(const Twins& twins, Judge& judge) {
  const auto& [one, other, link, others] = twins;
  judge.report(
      {.code = "net-duplicate-mac",
       .severity = Severity::blocker,
       .certainty = Certainty::likely,
       .symptom = Symptom::hang,
       .subjects = {.nodes = {one->host, other->host}, .pairs = {{one->host, other->host}}},
       .summary = fmt::format("{} of {} and {} of {} have one MAC, {}, in one network", link->name,
                              one->host, others->name, other->host, link->mac),
       .evidence = {mac_of(*one, *link), mac_of(*other, *others)},
       .fix = {{.node = other->host,
                .kind = Fix::Kind::manual,
                .text = fmt::format(
                    "give {} or {} another MAC: the card's own (`ethtool -P {}`), or a new one for "
                    "the copy of a virtual machine; look for what sets it (netplan, "
                    "NetworkManager, an image)",
                    one->host, other->host, shell_quote(others->name))}}});
}

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) judge.see(node, "net.links", node.links);
  for (const Twins& twins : twins_in(c.cluster)) report(twins, judge);
}

constexpr std::string_view kCauses[] = {"net-peer-unreachable",     "net-one-way-dropped",
                                        "net-ephemeral-dropped",    "net-ephemeral-rejected",
                                        "net-packet-loss",          "rendezvous-port-dropped",
                                        "rendezvous-port-rejected", "rendezvous-port-unreachable",
                                        "rendezvous-wrong-service"};
constexpr Page kPage{
    .meaning =
        "Two nodes have one MAC in one network, as copies of a virtual machine may. The two never "
        "reach each other, and the switch sends what is for one of them to the other, now here, "
        "now "
        "there.",
    .confirm = "`ip link show dev LINK` on both.",
    .fix = "Another MAC for one of them, where its configuration or its hypervisor sets it.",
    .verify = "`ip link show dev LINK` prints another MAC on each; `ping` between them works."};
constexpr Code kCodes[] = {{.id = "net-duplicate-mac",
                            .fault_class = FaultClass::iface_wrong,
                            .worst = Severity::blocker,
                            .title = "Two nodes have one MAC",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_duplicate_mac{
    .title = "Each node has a MAC of its own", .codes = kCodes, .run = run, .needs = Needs::pairs};

}  // namespace distdoctor::checks
