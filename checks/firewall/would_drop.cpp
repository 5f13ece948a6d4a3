// What a node's own rules say of connections that no test traffic tried: MASTER_PORT that was not
// ours to bind, or a run without probes.
#include <distdoctor/check.h>
#include <distdoctor/firewall_fix.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace distdoctor::checks {
namespace {

// Connections that one node's rules end alike, and that nobody has tried.
struct Untold {
  const NodeFacts* node;
  Way way;
  Address own;
  PortRange ports;
  bool master;
  std::vector<FilterStop> stops;
  std::vector<Address> peers = {};
};
using AllUntold = std::vector<Untold>;

// What a node listens on; without a port of its own the kernel picks one.
struct Listening {
  const NodeFacts* node;
  Address address;
  std::optional<std::uint16_t> port = {};
};

std::optional<PortRange> ports_of(const Listening& to) {
  if (to.port) return PortRange{*to.port, *to.port};
  if (!to.node->kernel.known()) return std::nullopt;
  return PortRange{static_cast<std::uint16_t>(to.node->kernel->port_low),
                   static_cast<std::uint16_t>(to.node->kernel->port_high)};
}

// Whatever came of it: what passes was measured, and what does not is another check's.
bool tried(const ClusterFacts& cluster, const NodeFacts& from, const Listening& to) {
  const PairFacts* pair = find_pair(cluster, from.host, to.node->host);
  return pair != nullptr && std::ranges::any_of(pair->dials, [&](const Dial& dial) {
           return dial.address == to.address &&
                  (dial.purpose == Purpose::master) == to.port.has_value();
         });
}

// The address of `from` in the subnet of `to`: what its kernel would take. None: a route decides.
std::optional<Address> source_towards(const NodeFacts& from, const Address& to) {
  if (!from.links.known()) return std::nullopt;
  for (const Link& link : *from.links) {
    for (const LinkAddress& own : link.addresses) {
      if (own.prefix < own.address.bits() && own.address.shares_prefix(to, own.prefix)) {
        return own.address;
      }
    }
  }
  return std::nullopt;
}

bool alike(const Untold& one, const Untold& other) {
  return one.node == other.node && one.way == other.way && one.own == other.own &&
         one.ports == other.ports && one.stops == other.stops;
}

// The kernel may hand out any port of a range, so that one more or less is no matter: all of them.
void ask(const Passage& passage, PortRange ports, bool master, AllUntold& all) {
  const auto pieces = outlooks(passage, ports);
  if (pieces.size() != 1 || pieces.front().result.says != FilterSays::stopped) return;
  Untold found{.node = passage.node,
               .way = passage.way,
               .own = passage.own,
               .ports = ports,
               .master = master,
               .stops = pieces.front().result.stops};
  const auto same =
      std::ranges::find_if(all, [&](const Untold& known) { return alike(known, found); });
  if (same != all.end()) return same->peers.push_back(passage.peer);
  found.peers = {passage.peer};
  all.push_back(std::move(found));
}

void ask_both(const ClusterFacts& cluster,
              const NodeFacts& from,
              const Listening& to,
              AllUntold& all) {
  const auto ports = ports_of(to);
  const bool master = to.port.has_value();
  const bool itself = &from == to.node;  // rank 0 and its own store
  if ((itself && !master) || !ports || tried(cluster, from, to)) return;
  const auto source = itself ? to.address : source_towards(from, to.address);
  if (!source) return;
  ask({.node = &from, .way = Way::out, .own = *source, .peer = to.address}, *ports, master, all);
  ask({.node = to.node, .own = to.address, .peer = *source}, *ports, master, all);
}

constexpr std::size_t kAllPairsUpTo = 32;  // nodes, as the probes

void add_master_port(const ClusterFacts& cluster, std::vector<Listening>& listening) {
  const auto& master = cluster.predicted.master;
  if (!master || !master->port) return;
  const NodeFacts* host = find_node(cluster, master->node);
  if (host == nullptr) return;
  for (const Address& address : master->addresses) {
    listening.push_back({host, address, master->port});
  }
}

void add_announced(const Case& c, const Prediction& prediction, std::vector<Listening>& listening) {
  const NodeFacts* node = find_node(c.cluster, prediction.node);
  if (node == nullptr) return;
  std::set<Address> addresses;
  for (const Announced& row : announced(c.cluster.job, prediction)) {
    if (addresses.insert(row.choice.address).second)
      listening.push_back({node, row.choice.address});
  }
}

AllUntold untold(const Case& c) {
  std::vector<Listening> listening;
  add_master_port(c.cluster, listening);
  if (c.cluster.nodes.size() <= kAllPairsUpTo) {
    for (const Prediction& node : c.cluster.predicted.nodes) add_announced(c, node, listening);
  }
  AllUntold all;
  for (const Listening& to : listening) {
    for (const NodeFacts& from : c.cluster.nodes) ask_both(c.cluster, from, to, all);
  }
  return all;
}

const NodeFacts* node_with(const ClusterFacts& cluster, const Address& address) {
  const auto found = std::ranges::find_if(
      cluster.nodes, [&](const NodeFacts& node) { return has_address(node, address); });
  return found == cluster.nodes.end() ? nullptr : &*found;
}

// What is announced at the address that is connected to.
std::vector<Purpose> purposes_of(const Case& c, const Address& address) {
  std::vector<Purpose> purposes;
  for (const Prediction& node : c.cluster.predicted.nodes) {
    for (const Announced& row : announced(c.cluster.job, node)) {
      if (row.choice.address == address) purposes.push_back(row.purpose);
    }
  }
  return purposes;
}

Severity severity_of(const Case& c, const Untold& found) {
  if (found.master) return Severity::blocker;
  return capped_by_purposes(c.cluster.job, Severity::blocker,
                            purposes_of(c, found.way == Way::in ? found.own : found.peers.front()));
}

std::string names(const Case& c, const std::vector<Address>& peers) {
  std::vector<std::string> hosts;
  for (const Address& peer : peers) {
    const NodeFacts* node = node_with(c.cluster, peer);
    std::string host = node == nullptr ? peer.text() : node->host;
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(std::move(host));
  }
  return fmt::format("{}", fmt::join(hosts, ", "));
}

std::string summary_of(const Case& c, const Untold& found) {
  const FilterStop& first = found.stops.front();
  const std::string ports = found.master ? fmt::format("MASTER_PORT {}", found.ports.first)
                                         : fmt::format("ephemeral ports ({})", found.ports.text());
  const char* verb = first.verdict == FilterVerdict::reject ? "reject" : "drop";
  const std::string what =
      found.way == Way::in
          ? fmt::format("connections from {} to its {}", names(c, found.peers), ports)
          : fmt::format("its connections to {} of {}", ports, names(c, found.peers));
  return fmt::format("the rules of {} would {} {}: {}; no test traffic tried it", found.node->host,
                     verb, what, text_of(first));
}

void report(const Case& c, const Untold& found, Judge& judge) {
  const std::string& host = found.node->host;
  Finding finding{.code = "firewall-would-drop",
                  .severity = severity_of(c, found),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = {host}},
                  .summary = summary_of(c, found)};
  std::vector<Closed> closed;
  for (const FilterStop& stop : found.stops) {
    finding.evidence.push_back(evidence_of(host, stop, names(c, found.peers)));
    for (const Address& peer : found.peers) closed.push_back({peer, stop});
  }
  if (found.way == Way::in) {  // ranks of one node meet over its own address
    const Passage itself{.node = found.node, .own = found.own, .peer = found.own};
    for (const FilterStop& stop : stops_of(itself, found.ports))
      closed.push_back({found.own, stop});
  }
  const auto at =
      found.node->links.known() ? find_address(*found.node->links, found.own) : std::nullopt;
  finding.fix = open_before_fix({.node = host,
                                 .peers = {},
                                 .ports = found.ports,
                                 .interface = at ? at->link->name : "",
                                 .way = found.way,
                                 .own = found.own},
                                *found.node->firewall, closed);
  judge.report(std::move(finding));
}

// Rules matter where nothing was sent: then not to have read them is a gap.
void note_unread(const Case& c, Judge& judge) {
  if (c.cluster.nodes.size() < 2) return;
  for (const NodeFacts& node : c.cluster.nodes) {
    const bool dialled = std::ranges::any_of(c.cluster.pairs, [&](const PairFacts& pair) {
      return !pair.dials.empty() && (pair.from == node.host || pair.to == node.host);
    });
    if (!dialled) judge.see(node, "firewall", node.firewall);
  }
}

void run(const Case& c, Judge& judge) {
  note_unread(c, judge);
  for (const Untold& found : untold(c)) report(c, found, judge);
}

constexpr Page kPage{
    .meaning =
        "The packet filter of a node has a rule, or a policy, that ends connections which the job "
        "needs. Nothing was sent to try it, so it was worked out from the rules alone, from the "
        "first rule to the deciding one: interfaces, addresses, ports, jumps, and each chain of "
        "the hook, since `accept` ends one of them only. Where a condition cannot be followed, "
        "nothing is said.",
    .confirm =
        "`nft -a list ruleset` or `iptables -vnL --line-numbers`: the counter of that rule rises "
        "with each attempt of `nc -vz -w 3 ADDRESS PORT` from the peer.",
    .fix =
        "One rule for these peers and ports before the rule that decides, through the tool that "
        "owns it; then write it to where the rules are loaded from.",
    .verify =
        "`distdoctor check --peers ...` with test traffic, or `nc -vz` while something "
        "listens."};
constexpr Code kCodes[] = {{.id = "firewall-would-drop",
                            .fault_class = FaultClass::firewall,
                            .worst = Severity::blocker,
                            .title = "A node's own rules would end connections of the job",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check firewall_would_drop{
    .title = "No rule of a node's filter is in the way of the job", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
