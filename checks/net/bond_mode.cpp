// What a bond in use is made of lets all of its members carry the job's traffic, and in order.
#include <distdoctor/check.h>

#include "bonds.h"

namespace distdoctor::checks {
namespace {

using namespace bonds;  // NOLINT(google-build-using-namespace): what these checks share

Finding about(const BondInUse& row, const char* code, std::string summary) {
  return {
      .code = code,
      .severity = Severity::notice,
      .certainty = Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {row.node->host}, .devices = {row.node->host + "/" + row.bond->name}},
      .summary = std::move(summary)};
}

Evidence seen(const BondInUse& row, const char* what, std::string observed, std::string expected) {
  return {.node = row.node->host,
          .fact = fmt::format("net.{}.{}", row.bond->name, what),
          .observed = std::move(observed),
          .expected = std::move(expected),
          .command = see_bond(*row.bond)};
}

Fix by_hand(const BondInUse& row, std::string text) {
  return {.node = row.node->host, .kind = Fix::Kind::manual, .text = std::move(text)};
}

std::vector<std::string> names(const Members& members) {
  std::vector<std::string> all;
  for (const BondMember* member : members) all.push_back(member->name);
  return all;
}

// --- LACP ---

// Up, and outside of the aggregator that carries the data.
Members idle_members(const Bond& bond) {
  Members idle;
  const auto carrying = members_carrying(bond);
  for (const BondMember* member : members_up(bond)) {
    if (std::ranges::find(carrying, member) == carrying.end()) idle.push_back(member);
  }
  return idle;
}

std::string aggregators_text(const Bond& bond) {
  std::vector<std::string> parts;
  for (const BondMember* member : members_up(bond)) {
    parts.push_back(fmt::format("{} in {}", member->name, member->aggregator));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Another node's bond of this name has more members that carry data.
const NodeFacts* fuller_twin(const Case& c, const BondInUse& row) {
  for (const BondInUse& twin : twins_of(c, row)) {
    const bool fuller = twin.told != nullptr &&
                        members_carrying(*twin.told).size() > members_carrying(*row.told).size();
    if (fuller) return twin.node;
  }
  return nullptr;
}

void judge_aggregators(const Case& c, const BondInUse& row, Judge& judge) {
  const Bond& bond = *row.told;
  if (bond.mode != "802.3ad" || members_carrying(bond).empty() || idle_members(bond).empty())
    return;
  const NodeFacts* const twin = fuller_twin(c, row);
  Finding finding = about(
      row, "net-bond-aggregators",
      fmt::format("{} of {} carries data on {} of its {} links that are up: LACP has not put them "
                  "into one aggregator{}",
                  row.bond->name, row.node->host, members_carrying(bond).size(),
                  members_up(bond).size(), twin == nullptr ? "" : ", as it has on " + twin->host));
  if (twin != nullptr) {
    finding.severity = Severity::degraded;
    finding.certainty = Certainty::likely;
  }
  finding.evidence = {seen(row, "aggregators", aggregators_text(bond), "all in one")};
  finding.fix = {
      by_hand(row, fmt::format("put the switch ports of {} into one LACP channel; two switches "
                               "must be one to their partner (MLAG, VPC)",
                               fmt::join(names(members_up(bond)), ", ")))};
  judge.report(std::move(finding));
}

// --- speeds ---

struct Speed {
  const BondMember* member;
  int mbps;
};

std::vector<Speed> speeds_of(const Bond& bond) {
  std::vector<Speed> speeds;
  for (const BondMember* member : members_up(bond)) {
    if (member->speed_mbps) speeds.push_back({member, *member->speed_mbps});
  }
  return speeds;
}

std::string speeds_text(const std::vector<Speed>& speeds) {
  std::vector<std::string> parts;
  for (const auto& [member, mbps] : speeds) {
    parts.push_back(fmt::format("{} {:g} Gb/s", member->name, mbps / 1000.0));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// A slow reserve of active-backup is a fair design, until it is in use.
bool reserve_waits(const Bond& bond, const std::vector<Speed>& speeds) {
  if (bond.mode != "active-backup") return false;
  const auto active =
      std::ranges::find(speeds, bond.active, [](const Speed& one) { return one.member->name; });
  return active == speeds.end() || active->mbps == std::ranges::max(speeds, {}, &Speed::mbps).mbps;
}

void judge_speeds(const BondInUse& row, Judge& judge) {
  const Bond& bond = *row.told;
  const auto speeds = speeds_of(bond);
  const bool alike =
      speeds.empty() || odd_ones_out(speeds, speeds.front().mbps, &Speed::mbps).empty();
  if (alike || reserve_waits(bond, speeds)) return;
  Finding finding =
      about(row, "net-bond-members-differ",
            fmt::format("the links of {} of {} are not equally fast ({}): {}", row.bond->name,
                        row.node->host, speeds_text(speeds),
                        bond.mode == "active-backup" ? "a slower one is in use"
                        : bond.mode == "802.3ad"     ? "LACP does not use them together"
                                                     : "what is put on a slow one is slow"));
  finding.evidence = {seen(row, "speeds", speeds_text(speeds), "one speed for all")};
  finding.fix = {by_hand(row,
                         "see why a link runs slower (`ethtool LINK`: cable, transceiver, the "
                         "switch port), or take it out of the bond")};
  judge.report(std::move(finding));
}

// --- order ---

void judge_order(const Case& c, const BondInUse& row, Judge& judge) {
  const Bond& bond = *row.told;
  const auto up = members_up(bond);
  const bool mixes = bond.mode == "balance-rr" && up.size() > 1;
  if (!mixes || !carries_tcp(c, *row.node, *row.bond)) return;
  Finding finding =
      about(row, "net-bond-round-robin",
            fmt::format("{} of {} deals packets of one connection out over {} links in turn: they "
                        "arrive out of order, and TCP takes that for loss",
                        row.bond->name, row.node->host, up.size()));
  finding.evidence = {seen(row, "mode", bond.mode, "one that keeps a connection on one link")};
  finding.fix = {by_hand(row,
                         "mode 802.3ad with an LACP channel on the switch, or balance-xor, "
                         "either with xmit_hash_policy=layer3+4")};
  judge.report(std::move(finding));
}

// A team tells nothing there.
void note_untold(const BondInUse& row, Judge& judge) {
  if (row.told != nullptr) return;
  judge.miss({.node = row.node->host,
              .fact = "net." + row.bond->name + ".bond",
              .why = {Why::unsupported, "/proc/net/bonding tells nothing of it"}});
}

void run(const Case& c, Judge& judge) {
  for (const BondInUse& row : bonds_in_use(c, judge)) {
    note_untold(row, judge);
    if (row.told == nullptr) continue;
    judge_aggregators(c, row, judge);
    judge_speeds(row, judge);
    judge_order(c, row, judge);
  }
}

constexpr Page kAggregatorsPage{
    .meaning =
        "With 802.3ad (LACP) only the members of one aggregator carry data. The switch did not "
        "answer alike on all links: ports without LACP, in two channels, or on two switches that "
        "do not act as one. The bond is up, and slower than it looks.",
    .confirm =
        "`cat /proc/net/bonding/bond0` (as root) shows another `Aggregator ID` at some links "
        "than below `Active Aggregator Info`.",
    .fix = "One LACP channel for all of them on the switch, or on a pair that is one (MLAG, VPC).",
    .verify = "All links have the active one's `Aggregator ID`."};
constexpr Page kSpeedsPage{
    .meaning =
        "The links of the bond run at different speeds. LACP does not use them together; the other "
        "modes put a connection on any of them, and every rank waits for the slowest one.",
    .confirm = "`cat /proc/net/bonding/bond0 | grep -E 'Slave Interface|Speed'`.",
    .fix = "Mend the link that is slow, or take it out of the bond.",
    .verify = "One `Speed` for all."};
constexpr Page kOrderPage{
    .meaning =
        "balance-rr sends the packets of one connection over all links in turn. They overtake one "
        "another, TCP answers with duplicate acknowledgements and sends again, and the sum of the "
        "links is not reached. One link has none of that.",
    .confirm =
        "`cat /proc/net/bonding/bond0` says `load balancing (round-robin)`; `nstat -az "
        "TcpExtTCPSACKReorder TcpRetransSegs` grows with the load.",
    .fix =
        "802.3ad or balance-xor with xmit_hash_policy=layer3+4, and several sockets per peer "
        "(NCCL_NSOCKS_PERTHREAD).",
    .verify = "The counters stand still, and iperf3 with several streams is as fast as the links."};
constexpr std::string_view kSpeedsCause[] = {"net-bond-aggregators"};
constexpr Code kCodes[] = {{.id = "net-bond-aggregators",
                            .fault_class = FaultClass::nic_bond,
                            .worst = Severity::degraded,
                            .title = "LACP uses a part of a bond's links only",
                            .causes = {},
                            .page = kAggregatorsPage},
                           {.id = "net-bond-members-differ",
                            .fault_class = FaultClass::nic_bond,
                            .worst = Severity::notice,
                            .title = "The links of a bond run at different speeds",
                            .causes = kSpeedsCause,
                            .page = kSpeedsPage},
                           {.id = "net-bond-round-robin",
                            .fault_class = FaultClass::nic_bond,
                            .worst = Severity::notice,
                            .title = "A bond deals packets out in turn, so that TCP sees disorder",
                            .causes = {},
                            .page = kOrderPage}};

}  // namespace

extern const Check net_bond_mode{
    .title = "Bonds in use let all of their links carry data", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
