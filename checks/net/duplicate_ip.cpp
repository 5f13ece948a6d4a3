// No other machine may have an address that a node announces.
#include <distdoctor/check.h>

#include "chosen.h"

#include <set>

namespace distdoctor::checks {
namespace {

struct Twin {
  const NodeFacts* owner;  // whose address it is meant to be
  std::string interface;
  Address address;
  const NodeFacts* other;  // null: a machine that is no peer
  std::string other_link;
  std::string seen;
  std::string command;
  const NodeFacts* seen_by;
};

bool counts(const Case& c, const NodeFacts& node, const Address& address) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  const auto is_it = [&](const Announced& row) {
    return same_address(row.choice.address, address);
  };
  if (prediction != nullptr && std::ranges::any_of(announced(c.cluster.job, *prediction), is_it)) {
    return true;
  }
  const auto& master = c.cluster.predicted.master;
  return master && std::ranges::find(master->addresses, address) != master->addresses.end();
}

// --- by the peers' own lists of addresses ---

// Others live in this subnet with addresses of their own: it is one network, unlike the docker0
// that each host has for itself.
bool shared_subnet(const ClusterFacts& cluster, const LinkAddress& row) {
  return std::ranges::any_of(cluster.nodes,
                             [&](const NodeFacts& node) { return beside(node, row); });
}

std::vector<Twin> twins_among_peers(const Case& c) {
  std::vector<Twin> twins;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (!node.links.known()) continue;
    for (const Link& link : *node.links) {
      for (const LinkAddress& row : link.addresses) {
        if (!usable(link, row) || !counts(c, node, row.address)) continue;
        if (!shared_subnet(c.cluster, row)) continue;
        for (const NodeFacts& other : c.cluster.nodes) {
          const auto at = where_is(other, row.address);
          if (other.host == node.host || !at || !at->link->running) continue;
          twins.push_back({&node, link.name, row.address, &other, at->link->name,
                           fmt::format("{} has it too, on {}", other.host, at->link->name),
                           "ip -br addr show dev " + shell_quote(link.name), &node});
        }
      }
    }
  }
  return twins;
}

// --- by who answers ARP ---

const Link* link_with_mac(const NodeFacts& node, const std::string& mac) {
  if (!node.links.known()) return nullptr;
  const auto found = std::ranges::find(*node.links, mac, &Link::mac);
  return found == node.links->end() ? nullptr : &*found;
}

const NodeFacts* owner_of(const Case& c, const NodeFacts& asker, const Address& address) {
  if (holds(asker, address)) return &asker;
  const auto found = std::ranges::find_if(
      c.cluster.nodes, [&](const NodeFacts& node) { return holds(node, address); });
  return found == c.cluster.nodes.end() ? nullptr : &*found;
}

std::optional<Twin> twin_by_arp(const Case& c,
                                const NodeFacts& asker,
                                const DuplicateAddress& row) {
  const NodeFacts* owner = owner_of(c, asker, row.address);
  // The owner's other links may answer for it: net/arp_flux.
  if (owner == nullptr || link_with_mac(*owner, row.other_mac) != nullptr) return std::nullopt;
  if (!counts(c, *owner, row.address)) return std::nullopt;
  const NodeFacts* other = nullptr;
  std::string other_link;
  for (const NodeFacts& node : c.cluster.nodes) {
    const Link* link = link_with_mac(node, row.other_mac);
    if (link == nullptr) continue;
    other = &node;
    other_link = link->name;
  }
  const auto at = where_is(*owner, row.address);
  return Twin{owner,
              at ? at->link->name : row.interface,
              row.address,
              other,
              other_link,
              fmt::format("{} answers ARP for it{}", row.other_mac,
                          other == nullptr ? ", which is no peer's"
                                           : fmt::format(", {} of {}", other_link, other->host)),
              fmt::format("arping -D -c 2 -I {} {}", shell_quote(row.interface),
                          shell_quote(row.address.text())),
              &asker};
}

// --- findings ---

// The intruder is the one that lies in that subnet by another address as well.
std::optional<Fix> take_it_away(const Twin& twin) {
  if (twin.other == nullptr) return std::nullopt;
  const auto theirs = where_is(*twin.other, twin.address);
  const auto owners = where_is(*twin.owner, twin.address);
  if (!theirs || !owners) return std::nullopt;
  if (!beside(*twin.other, *theirs->address) || beside(*twin.owner, *owners->address)) {
    return std::nullopt;
  }
  return Fix{
      .node = twin.other->host,
      .kind = Fix::Kind::shell,
      .command = fmt::format("ip addr del {}/{} dev {}", twin.address.text(),
                             theirs->address->prefix, shell_quote(theirs->link->name)),
      .text = fmt::format("as root; it ends the connections of that address, be it your own, "
                          "and {} keeps its other address there. Take it out of its "
                          "configuration as well",
                          twin.other->host)};
}

void report(const std::vector<Twin>& twins, Judge& judge) {
  const Twin& first = twins.front();
  const std::string other = first.other == nullptr ? "another machine" : first.other->host;
  Finding finding{
      .code = "net-duplicate-ip",
      .severity = Severity::blocker,
      .certainty = Certainty::proved,
      .symptom = Symptom::hang,
      .subjects = {.nodes = {first.owner->host}},
      .summary = fmt::format("{} of {} ({}) is also an address of {}", first.address.text(),
                             first.owner->host, first.interface, other)};
  if (first.other != nullptr) finding.subjects.nodes.push_back(first.other->host);
  for (const Twin& twin : twins) {
    finding.evidence.push_back({.node = twin.seen_by->host,
                                .fact = "address " + twin.address.text(),
                                .observed = twin.seen,
                                .expected = "one machine's",
                                .command = twin.command});
  }
  auto fix = take_it_away(first);
  finding.fix.push_back(
      fix ? *std::move(fix)
          : Fix{.node = first.owner->host,
                .kind = Fix::Kind::manual,
                .text = fmt::format("give {} or {} another address; the MAC tells "
                                    "which machine it is",
                                    first.owner->host, other)});
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  std::map<Address, std::vector<Twin>> found;
  for (const NodeFacts& node : c.cluster.nodes) judge.see(node, "net.links", node.links);
  for (Twin& twin : twins_among_peers(c)) {
    auto& twins = found[twin.address];
    // The one that has nothing else in that subnet is the owner; the other row says the same.
    if (twins.empty() || take_it_away(twin)) twins = {twin};
  }
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* duplicates = judge.see(node, "arp.duplicates", node.duplicates);
    if (duplicates == nullptr) continue;
    for (const DuplicateAddress& row : *duplicates) {
      if (auto twin = twin_by_arp(c, node, row)) found[twin->address].push_back(*std::move(twin));
    }
  }
  for (const auto& [address, twins] : found) report(twins, judge);
}

constexpr std::string_view kCauses[] = {
    "net-ephemeral-dropped",    "net-ephemeral-rejected",      "net-one-way-dropped",
    "net-peer-unreachable",     "rendezvous-port-dropped",     "rendezvous-port-rejected",
    "rendezvous-wrong-service", "rendezvous-port-unreachable", "net-packet-loss"};
constexpr Page kPage{
    .meaning =
        "Two machines have one address. Whose packets arrive where depends on who answered the "
        "last ARP request, so that connections are refused, reset or lost now and then.",
    .confirm =
        "`arping -D -I LINK ADDRESS` on the owner prints a reply; `arping -c 2 -I LINK ADDRESS` "
        "from a third node prints two MACs.",
    .fix =
        "Take the address from the machine that should not have it: `ip addr del ADDRESS/PREFIX "
        "dev "
        "LINK`, and in its configuration.",
    .verify = "`arping -D -c 2 -I LINK ADDRESS` on the owner prints no reply."};
constexpr Code kCodes[] = {{.id = "net-duplicate-ip",
                            .fault_class = FaultClass::iface_wrong,
                            .worst = Severity::blocker,
                            .title = "An address is used twice",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_duplicate_ip{
    .title = "Announced addresses belong to one machine", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
