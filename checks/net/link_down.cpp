// The links that should carry the job's traffic must be up and have a carrier.
#include <distdoctor/check.h>

#include "chosen.h"

namespace distdoctor::checks {
namespace {

struct Wanted {
  Severity severity;
  std::string why;
};

bool on_link(const Link& link, const std::string& interface) {
  return link.name == interface || std::ranges::any_of(link.addresses, [&](const LinkAddress& row) {
           return row.label == interface;
         });
}

// The link's whole name stands in a list that does not exclude.
bool names_it(const Setting* setting, const Link& link) {
  if (setting == nullptr || setting->value.starts_with('^')) return false;
  std::string_view rest = setting->value;
  if (rest.starts_with('=')) rest.remove_prefix(1);
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    if (rest.substr(0, comma) == link.name) return true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return false;
}

// --- who wants the link ---

std::optional<Wanted> by_nccl(const Case& c, const Prediction& prediction, const Link& link) {
  const Use use = c.cluster.job.nccl;
  if (use == Use::no || !prediction.nccl.known()) return std::nullopt;
  const Setting* setting = find_setting(prediction, "NCCL_SOCKET_IFNAME");
  const bool takes =
      prediction.nccl->bootstrap && on_link(link, prediction.nccl->bootstrap->interface);
  const bool in_vain = !prediction.nccl->bootstrap && names_it(setting, link);
  if (!takes && !in_vain) return std::nullopt;
  return Wanted{capped_by_use(Severity::blocker, use),
                takes ? "NCCL takes it" : "NCCL is told to take it"};
}

std::optional<Wanted> by_gloo(const Case& c, const Prediction& prediction, const Link& link) {
  const Use use = c.cluster.job.gloo;
  if (use == Use::no || !prediction.gloo.known()) return std::nullopt;
  const Setting* setting = find_setting(prediction, "GLOO_SOCKET_IFNAME");
  const bool takes = std::ranges::any_of(prediction.gloo->devices, [&](const Choice& choice) {
    return on_link(link, choice.interface);
  });
  const bool in_vain = !prediction.gloo->error.empty() && names_it(setting, link);
  if (!takes && !in_vain) return std::nullopt;
  return Wanted{capped_by_use(Severity::blocker, use),
                takes ? "Gloo takes it" : "Gloo is told to take it"};
}

bool fails(const Dial& dial) {
  return dial.outcome != Outcome::ok;
}

// The master's address is on it, or the way to the master was, and now nothing gets there.
std::optional<Wanted> by_rendezvous(const Case& c, const NodeFacts& node, const Link& link) {
  if (!c.cluster.predicted.master) return std::nullopt;
  const Master& master = *c.cluster.predicted.master;
  for (const LinkAddress& row : link.addresses) {
    for (const Address& wanted : master.addresses) {
      if (same_address(row.address, wanted))
        return Wanted{Severity::blocker, "MASTER_ADDR is on it"};
      if (!row.address.shares_prefix(wanted, row.prefix)) continue;
      const PairFacts* pair = find_pair(c.cluster, node.host, master.node);
      if (pair == nullptr) continue;
      std::vector<Dial> dials;
      std::ranges::copy_if(pair->dials, std::back_inserter(dials),
                           [](const Dial& dial) { return dial.purpose == Purpose::master; });
      if (!dials.empty() && std::ranges::all_of(dials, fails)) {
        return Wanted{Severity::blocker, "it leads to MASTER_ADDR"};
      }
    }
  }
  return std::nullopt;
}

bool in_subnet(const Link& link, const Address& address) {
  return std::ranges::any_of(link.addresses, [&](const LinkAddress& row) {
    return row.address.shares_prefix(address, row.prefix);
  });
}

// What another node announces from a link of this name, in this link's subnet.
std::optional<Announced> peers_choice(const Case& c, const NodeFacts& other, const Link& link) {
  const Prediction* prediction = find_prediction(c.cluster, other.host);
  if (prediction == nullptr) return std::nullopt;
  for (const Announced& row : announced(c.cluster.job, *prediction)) {
    if (row.choice.interface == link.name && in_subnet(link, row.choice.address)) return row;
  }
  return std::nullopt;
}

// Half of the other nodes use their link of this name: this node ought to as well.
std::optional<Wanted> as_its_peers(const Case& c, const NodeFacts& node, const Link& link) {
  std::size_t users = 0;
  Wanted wanted{Severity::notice, ""};
  for (const NodeFacts& other : c.cluster.nodes) {
    if (other.host == node.host) continue;
    const auto row = peers_choice(c, other, link);
    if (!row) continue;
    ++users;
    const auto dials = dials_between(c.cluster, node.host, other.host, row->choice.address);
    const bool cut = std::ranges::any_of(dials, [](const Dial* dial) { return fails(*dial); });
    const Severity severity = capped_by_use(cut ? Severity::blocker : Severity::degraded,
                                            use_of(c.cluster.job, row->purpose));
    wanted.severity = std::max(wanted.severity, severity);
    if (wanted.why.empty()) {
      wanted.why = fmt::format("{} uses its own for {}", other.host,
                               row->purpose == Purpose::gloo ? "Gloo" : "NCCL");
    }
  }
  if (users == 0 || 2 * users + 1 < c.cluster.nodes.size()) return std::nullopt;
  return wanted;
}

// What a node sends to its own addresses goes by the loopback link: rank 0 to its store, ranks of
// one node to each other.
Wanted by_itself(const Case& c, const NodeFacts& node) {
  const PairFacts* own = find_pair(c.cluster, node.host, node.host);
  const bool cut = own != nullptr && std::ranges::any_of(own->dials, [](const Dial& dial) {
                     return dial.outcome == Outcome::timed_out;
                   });
  if (cut) return {Severity::blocker, "rank 0 does not reach its own MASTER_PORT without it"};
  return {Severity::notice, "ranks of one node do not reach each other without it"};
}

std::optional<Wanted> wanted(const Case& c, const NodeFacts& node, const Link& link) {
  if (link.kind == LinkKind::loopback) return by_itself(c, node);
  std::vector<std::optional<Wanted>> all;
  if (const Prediction* prediction = find_prediction(c.cluster, node.host)) {
    all = {by_nccl(c, *prediction, link), by_gloo(c, *prediction, link)};
  }
  all.push_back(by_rendezvous(c, node, link));
  all.push_back(as_its_peers(c, node, link));
  std::optional<Wanted> most;
  for (const auto& one : all) {
    if (one && (!most || one->severity > most->severity)) most = one;
  }
  return most;
}

// --- findings ---

void report(const NodeFacts& node, const Link& link, const Wanted& wanted, Judge& judge) {
  const std::string state = link.up ? "no carrier" : "administratively down";
  Finding finding{.code = link.up ? "net-link-no-carrier" : "net-link-down",
                  .severity = wanted.severity,
                  .certainty = Certainty::proved,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} of {} is {}, and {}", link.name, node.host,
                                         link.up ? "without carrier" : "down", wanted.why)};
  finding.evidence.push_back(
      {.node = node.host,
       .fact = fmt::format("net.{}.state", link.name),
       .observed = link.operstate.empty() ? state : fmt::format("{} ({})", state, link.operstate),
       .expected = "up",
       .command = "ip link show dev " + shell_quote(link.name)});
  if (link.up) {
    finding.fix.push_back(
        {.node = node.host,
         .kind = Fix::Kind::manual,
         .text = fmt::format("the cable, the transceiver or the switch port of {}: "
                             "`ethtool {}` must say \"Link detected: yes\"",
                             link.name, shell_quote(link.name))});
  } else {
    finding.fix.push_back({.node = node.host,
                           .kind = Fix::Kind::shell,
                           .command = "ip link set dev " + shell_quote(link.name) + " up",
                           .text = "as root; find out who took it down"});
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.nodes.size() < 2) return;
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* links = judge.see(node, "net.links", node.links);
    if (links == nullptr) continue;
    for (const Link& link : *links) {
      const bool works = link.kind == LinkKind::loopback ? link.up : link.up && link.running;
      if (works) continue;
      if (link.up && bare_bridge(node, link)) continue;
      const auto who = wanted(c, node, link);
      if (who) report(node, link, *who, judge);
    }
  }
}

constexpr std::string_view kCauses[] = {"net-no-route",
                                        "net-peer-unreachable",
                                        "net-one-way-dropped",
                                        "net-ephemeral-dropped",
                                        "net-nccl-ifname-no-match",
                                        "net-nccl-ifname-loopback",
                                        "net-gloo-ifname-no-match",
                                        "rendezvous-port-dropped",
                                        "net-nccl-interface-unreachable",
                                        "rendezvous-port-unreachable",
                                        "net-address-family",
                                        "net-gloo-interface-unreachable"};
constexpr Page kDownPage{
    .meaning =
        "An interface that the job should use is administratively down. NCCL from 2.28.3 on "
        "passes over it in silence; older NCCL and Gloo announce its address all the same.",
    .confirm = "`ip link show dev LINK` shows no UP between the angle brackets.",
    .fix =
        "`ip link set dev LINK up`, and what is in charge of it: netplan, NetworkManager, "
        "ifupdown.",
    .verify = "`ip -br link show dev LINK` says UP; `ping` to a peer's address on it is answered."};
constexpr Page kCarrierPage{
    .meaning =
        "An interface that the job should use is up, but has no link: no cable, a dead "
        "transceiver, a closed switch port, or a virtual link without its other end.",
    .confirm = "`ip link show dev LINK` says NO-CARRIER; `ethtool LINK` says `Link detected: no`.",
    .fix =
        "Cable, transceiver, switch port. Until then name another interface in NCCL_SOCKET_IFNAME "
        "and GLOO_SOCKET_IFNAME on all nodes.",
    .verify = "`ethtool LINK` says `Link detected: yes`."};
constexpr Code kCodes[] = {{.id = "net-link-down",
                            .fault_class = FaultClass::link_down,
                            .worst = Severity::blocker,
                            .title = "A link that the job needs is down",
                            .causes = kCauses,
                            .page = kDownPage},
                           {.id = "net-link-no-carrier",
                            .fault_class = FaultClass::link_down,
                            .worst = Severity::blocker,
                            .title = "A link that the job needs has no carrier",
                            .causes = kCauses,
                            .page = kCarrierPage}};

}  // namespace

extern const Check net_link_down{
    .title = "The links that the job needs are up", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
