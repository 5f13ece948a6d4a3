// Every node must reach the addresses that the others announce, on some port at least.
#include "lanes.h"

namespace distdoctor::checks {
namespace {

// --- pairs ---

// Both directions of one pair, and every lane between the two.
std::vector<LaneReadings> by_pair(const LaneReadings& rows) {
  std::vector<LaneReadings> pairs;
  for (const LaneReading& row : rows) {
    const auto same = std::ranges::find_if(pairs, [&](const LaneReadings& known) {
      const Lane& lane = known.front().lane;
      return (lane.from == row.lane.from && lane.to == row.lane.to) ||
             (lane.from == row.lane.to && lane.to == row.lane.from);
    });
    if (same == pairs.end()) {
      pairs.push_back({row});
    } else {
      same->push_back(row);
    }
  }
  return pairs;
}

// The one node that is an end of every such pair, if there are several.
const NodeFacts* common_end(const std::vector<LaneReadings>& pairs) {
  if (pairs.size() < 2) return nullptr;
  for (const NodeFacts* node : {pairs.front().front().lane.from, pairs.front().front().lane.to}) {
    const bool in_all = std::ranges::all_of(pairs, [&](const LaneReadings& rows) {
      return rows.front().lane.from == node || rows.front().lane.to == node;
    });
    if (in_all) return node;
  }
  return nullptr;
}

// --- words ---

std::string why(const LaneReadings& rows) {
  const Dial& dial = *rows.front().sample.dial;
  if (dial.outcome == Outcome::timed_out) return "nothing comes back on any port";
  return dial.error.empty() ? std::string(slug(dial.outcome)) : dial.error;
}

std::string tested(const Case& c, const LaneReadings& rows) {
  const Lane& lane = rows.front().lane;
  const std::string pair =
      fmt::format("{} or {}, or what lies between", lane.from->host, lane.to->host);
  return c.cluster.nodes.size() == 2 ? pair + ": they were tested only with each other" : pair;
}

// --- mending ---

// A filter on a node where the first packets were seen to arrive: MASTER_PORT, too, if it failed.
std::vector<Fix> open_here(const LaneReading& row) {
  std::vector<Fix> fixes = let_in({row}, row.lane);
  const Dial* master = row.lane.master;
  if (!dropped_too(row.lane, master)) return fixes;
  const PortRange port{master->port, master->port};
  add_new(fixes, distdoctor::let_in({reading_of(row.lane, *master)}, port, false));
  return fixes;
}

Fix look_at(const LaneReadings& rows) {
  const Lane& lane = rows.front().lane;
  return {.node = lane.from->host,
          .kind = Fix::Kind::manual,
          .text = fmt::format("see whether {} is up and in the same network (`ping {}`, `ip neigh "
                              "show {}`), and what lies between: VLAN, security group, switch ACL",
                              lane.to->host, shell_quote(lane.address.text()),
                              shell_quote(lane.address.text()))};
}

std::vector<Fix> fixes_for(const LaneReadings& rows) {
  std::vector<Fix> fixes;
  bool unseen = false;
  for (const LaneReading& row : rows) {
    if (row.sample.spot == Spot::target) {
      add_new(fixes, open_here(row));
    } else if (row.sample.spot == Spot::sender && row.sample.kind == Kind::dropped) {
      add_new(fixes, let_out(row));
    } else {
      unseen = true;
    }
  }
  if (unseen || fixes.empty()) fixes.push_back(look_at(rows));
  return fixes;
}

// --- the findings ---

Finding begin(const Case& c, const LaneReadings& rows) {
  Finding finding = finding_about(c, rows, "net-peer-unreachable");
  finding.certainty = Certainty::proved;  // that it is so; not why
  finding.fix = fixes_for(rows);
  return finding;
}

// "node0 does not reach node1, node2 at 10.0.0.1", "they do not reach it", or neither the other.
std::string who_fails(const NodeFacts& node,
                      const std::vector<std::string>& others,
                      const LaneReadings& rows) {
  const auto senders = hosts_of(rows, &Lane::from);
  const bool out = std::ranges::find(senders, node.host) != senders.end();
  const bool in = senders.size() > (out ? 1U : 0U);
  const std::string address = rows.front().lane.address.text();
  const bool several = others.size() > 1;
  if (out && in) {
    return fmt::format("{} and {} do not reach each other at {}", node.host, list(others), address);
  }
  if (out) return fmt::format("{} does not reach {} at {}", node.host, list(others), address);
  return fmt::format("{} {} not reach {} at {}", list(others), several ? "do" : "does", node.host,
                     address);
}

// The other way: tried, and open.
std::string but(const Case& c, const LaneReadings& rows) {
  const bool open = std::ranges::all_of(
      rows, [&](const LaneReading& row) { return other_way_open(c.cluster, row.lane); });
  return open ? "; the other way is open" : "";
}

void report_node(const Case& c, const NodeFacts& node, const LaneReadings& rows, Judge& judge) {
  Finding finding = begin(c, rows);
  finding.subjects.nodes = {node.host};
  std::vector<std::string> others;
  for (const LaneReading& row : rows) {
    const NodeFacts* other = row.lane.from == &node ? row.lane.to : row.lane.from;
    if (std::ranges::find(others, other->host) == others.end()) others.push_back(other->host);
  }
  finding.summary = fmt::format("{}: {}{}", who_fails(node, others, rows), why(rows), but(c, rows));
  conclude(c, rows, std::move(finding), judge);
}

void report_pair(const Case& c, const LaneReadings& rows, Judge& judge) {
  const Lane& lane = rows.front().lane;
  Finding finding = begin(c, rows);
  finding.subjects.nodes = {lane.from->host, lane.to->host};
  finding.summary = fmt::format("{}: {}{}; it is {}", who_fails(*lane.from, {lane.to->host}, rows),
                                why(rows), but(c, rows), tested(c, rows));
  conclude(c, rows, std::move(finding), judge);
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  const LaneReadings rows = lanes_in(c.cluster, {LaneState::unreachable});
  note_doubts(rows, judge);
  const auto pairs = by_pair(rows);
  if (const NodeFacts* node = common_end(pairs)) return report_node(c, *node, rows, judge);
  for (const LaneReadings& pair : pairs) report_pair(c, pair, judge);
}

constexpr std::string_view kCauses[] = {"net-ephemeral-dropped", "net-one-way-dropped",
                                        "rendezvous-port-dropped", "rendezvous-port-unreachable"};
constexpr Page kPage{
    .meaning =
        "A node gets nothing through to an address that NCCL or Gloo announce on another one, on "
        "any port; the finding says whether the other way works. Nothing seen on the nodes tells "
        "why: a filter that drops all, a VLAN, a "
        "cable, a node that is off.",
    .confirm = "`ping ADDRESS`; `ip neigh show ADDRESS`; `tcpdump -ni LINK host ADDRESS` there.",
    .fix =
        "Where the first packets were seen to arrive, open that node's own filter. Else mend "
        "what lies between, or choose an interface that all nodes share (NCCL_SOCKET_IFNAME, "
        "GLOO_SOCKET_IFNAME).",
    .verify = "`nc -l 40000` there, and `nc -vz -w 3 ADDRESS 40000` succeeds."};
constexpr Code kCodes[] = {{.id = "net-peer-unreachable",
                            .fault_class = FaultClass::unknown_connect,
                            .worst = Severity::blocker,
                            .title = "A node does not reach another one",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_peer_unreachable{
    .title = "The nodes reach each other", .codes = kCodes, .run = run, .needs = Needs::pairs};

}  // namespace distdoctor::checks
