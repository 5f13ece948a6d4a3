// Every member of a bond that carries the job's traffic has a carrier.
#include <distdoctor/check.h>

#include "bonds.h"

namespace distdoctor::checks {
namespace {

using namespace bonds;  // NOLINT(google-build-using-namespace): what these checks share

struct Members {
  std::vector<const Link*> running = {};
  std::vector<const Link*> down = {};
  [[nodiscard]] std::size_t size() const { return running.size() + down.size(); }
};

// The bond's own monitor may know better than the link: an ARP monitor sees past the switch.
bool down_in_bond(const BondInUse& row, const Link& link) {
  if (row.told == nullptr) return false;
  const auto& all = row.told->members;
  const auto member = std::ranges::find(all, link.name, &BondMember::name);
  return member != all.end() && !member->up;
}

Members members_of(const BondInUse& row) {
  Members members;
  for (const Link& link : *row.node->links) {
    if (link.master != row.bond->name) continue;
    const bool down = !link.running || down_in_bond(row, link);
    (down ? members.down : members.running).push_back(&link);
  }
  return members;
}

// Another node's bond of this name is faster, or has more members that share the load: it adds
// them up, as this one would. Where all nodes lack the same it may be meant.
const NodeFacts* better_twin(const Case& c, const BondInUse& row, const Members& members) {
  const bool shares = row.told != nullptr && shares_load(*row.told);
  for (const BondInUse& twin : twins_of(c, row)) {
    const auto& here = row.bond->speed_mbps;
    const auto& there = twin.bond->speed_mbps;
    const bool faster = here && there && *there > *here;
    const bool more = shares && members_of(twin).running.size() > members.running.size();
    if (faster || more) return twin.node;
  }
  return nullptr;
}

std::vector<std::string> names(const std::vector<const Link*>& links) {
  std::vector<std::string> all;
  for (const Link* link : links) all.push_back(link->name);
  return all;
}

std::string consequence(const BondInUse& row, const NodeFacts* twin) {
  if (twin != nullptr) return ", and it is slower than on " + twin->host;
  if (row.told == nullptr) return "; what is left is slower, or has no reserve";
  return shares_load(*row.told) ? "; what is left is slower" : "; it has no reserve left";
}

std::string state_of(const BondInUse& row, const Link& link) {
  if (link.running && down_in_bond(row, link)) return "down, by the bond's own monitor";
  return link.operstate.empty() ? "no" : link.operstate;
}

void report(const Case& c, const BondInUse& row, const Members& members, Judge& judge) {
  const std::string& host = row.node->host;
  const std::string& bond = row.bond->name;
  const NodeFacts* const twin = better_twin(c, row, members);
  Finding finding{
      .code = "net-bond-member-down",
      .severity = twin != nullptr ? Severity::degraded : Severity::notice,
      .certainty = twin != nullptr ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {host}},
      .summary = fmt::format("{} of {} runs on {} of its {} links: {} is down{}", bond, host,
                             members.running.size(), members.size(),
                             fmt::join(names(members.down), ", "), consequence(row, twin))};
  for (const Link* link : members.down) {
    finding.subjects.devices.push_back(host + "/" + link->name);
    finding.evidence.push_back(
        {.node = host,
         .fact = fmt::format("net.{}.running", link->name),
         .observed = state_of(row, *link),
         .expected = "up, as a member of " + bond,
         .command = fmt::format("{}; ethtool {}", see_bond(*row.bond), shell_quote(link->name))});
  }
  finding.fix = {
      {.node = host,
       .kind = Fix::Kind::manual,
       .text = fmt::format("see to the cable, the transceiver and the port of the switch of {}: "
                           "`dmesg -T | grep {}` tells since when",
                           fmt::join(names(members.down), ", "),
                           shell_quote(members.down.front()->name))}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const BondInUse& row : bonds_in_use(c, judge)) {
    const Members members = members_of(row);
    // Without any it is down as a whole: net/link_down.
    if (!members.down.empty() && !members.running.empty()) report(c, row, members, judge);
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
