// Every member of a bond that carries the job's traffic has a carrier.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

struct BondInUse {
  const NodeFacts* node;
  const Link* bond;
  std::vector<const Link*> running = {};
  std::vector<const Link*> down = {};
};

bool is_bond(const Link& link) {
  return link.kind == LinkKind::bond || link.kind == LinkKind::team;
}

// The bond itself, or a VLAN on it by its usual name ("bond0.100").
bool over(const std::string& interface, const Link& bond) {
  return interface == bond.name || interface.starts_with(bond.name + ".");
}

bool used(const Case& c, const NodeFacts& node, const Link& bond) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  return prediction != nullptr &&
         std::ranges::any_of(announced(c.cluster.job, *prediction), [&](const Announced& row) {
           return over(row.choice.interface, bond);
         });
}

BondInUse members_of(const NodeFacts& node, const Link& bond) {
  BondInUse row{.node = &node, .bond = &bond};
  for (const Link& link : *node.links) {
    if (link.master == bond.name) (link.running ? row.running : row.down).push_back(&link);
  }
  return row;
}

// Another node's bond of this name is faster: it adds its members up, as this one would.
const NodeFacts* faster_peer(const Case& c, const BondInUse& row) {
  for (const NodeFacts& node : c.cluster.nodes) {
    if (&node == row.node || !node.links.known()) continue;
    const Link* other = find_link(*node.links, row.bond->name);
    const bool faster = other != nullptr && is_bond(*other) && row.bond->speed_mbps &&
                        other->speed_mbps && *other->speed_mbps > *row.bond->speed_mbps;
    if (faster) return &node;
  }
  return nullptr;
}

std::vector<std::string> names(const std::vector<const Link*>& links) {
  std::vector<std::string> all;
  for (const Link* link : links) all.push_back(link->name);
  return all;
}

void report(const Case& c, const BondInUse& row, Judge& judge) {
  const NodeFacts& node = *row.node;
  const std::string& bond = row.bond->name;
  const NodeFacts* const peer = faster_peer(c, row);
  Finding finding{.code = "net-bond-member-down",
                  .severity = peer != nullptr ? Severity::degraded : Severity::notice,
                  .certainty = peer != nullptr ? Certainty::likely : Certainty::possible,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format(
                      "{} of {} runs on {} of its {} links: {} has no carrier{}", bond, node.host,
                      row.running.size(), row.running.size() + row.down.size(),
                      fmt::join(names(row.down), ", "),
                      peer != nullptr ? fmt::format(", and it is slower than on {}", peer->host)
                                      : "; what is left is slower, or has no reserve")};
  for (const Link* link : row.down) {
    finding.subjects.devices.push_back(node.host + "/" + link->name);
    finding.evidence.push_back(
        {.node = node.host,
         .fact = fmt::format("net.{}.running", link->name),
         .observed = link->operstate.empty() ? "no" : link->operstate,
         .expected = "up, as a member of " + bond,
         .command = fmt::format("cat /proc/net/bonding/{}; ethtool {}", shell_quote(bond),
                                shell_quote(link->name))});
  }
  finding.fix = {
      {.node = node.host,
       .kind = Fix::Kind::manual,
       .text = fmt::format("see to the cable, the transceiver and the port of the switch of {}: "
                           "`dmesg -T | grep {}` tells since when",
                           fmt::join(names(row.down), ", "), shell_quote(row.down.front()->name))}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* links = judge.see(node, "net.links", node.links);
    if (links == nullptr) continue;
    for (const Link& link : *links) {
      if (!is_bond(link) || !used(c, node, link)) continue;
      const BondInUse row = members_of(node, link);
      // Without any it is down as a whole: net/link_down.
      if (!row.down.empty() && !row.running.empty()) report(c, row, judge);
    }
  }
}

constexpr Page kPage{
    .meaning =
        "A bond carries the job's traffic on fewer links than it has. One that adds them up "
        "(802.3ad, balance-xor, balance-rr) is slower by that share, and every rank waits for the "
        "slowest node; one with a reserve (active-backup) has none left.",
    .confirm =
        "`cat /proc/net/bonding/bond0` shows `MII Status: down` below a member; `ip -br "
        "link show master bond0`.",
    .fix = "Mend the cable, the transceiver or the switch's port of the member that is down.",
    .verify = "`cat /proc/net/bonding/bond0` shows `MII Status: up` for each member."};
constexpr Code kCodes[] = {{.id = "net-bond-member-down",
                            .fault_class = FaultClass::nic_bond,
                            .worst = Severity::degraded,
                            .title = "A bond runs on fewer links than it has",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check net_bond{
    .title = "All links of a bond in use are up", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
