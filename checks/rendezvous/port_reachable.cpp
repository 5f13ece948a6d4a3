// Every node must be able to connect to MASTER_ADDR:MASTER_PORT.
#include <distdoctor/between.h>
#include <distdoctor/check.h>
#include <distdoctor/open_way.h>
#include <distdoctor/untested.h>

#include "dialled.h"
#include "mend.h"

#include <map>
#include <tuple>
#include <utility>

namespace distdoctor::checks {
namespace {

std::string end_point(const Dial& dial) {
  const std::string address = dial.address.text();
  return fmt::format("{}:{}", dial.address.v6 ? "[" + address + "]" : address, dial.port);
}

std::string senders(const Readings& readings) {
  std::vector<std::string> hosts;
  for (const Reading& reading : readings) hosts.push_back(reading.from->host);
  return fmt::format("{}", fmt::join(hosts, ", "));
}

std::string target_name(const Reading& reading) {
  return reading.target == nullptr ? reading.dial->address.text() : reading.target->host;
}

// --- evidence ---

Evidence dialled(const Reading& reading, std::string expected) {
  const Dial& dial = *reading.dial;
  return {.node = reading.from->host,
          .fact = "dial " + end_point(dial),
          .observed = fmt::format(
              "{}{}{}{}", slug(dial.outcome),
              dial.error.empty() || dial.error == kAnswerDropped ? "" : " (" + dial.error + ")",
              dial.ours ? " while our own listener was there" : "", trace_text(dial)),
          .expected = std::move(expected),
          .command = fmt::format("nc -vz -w 3 {} {}", shell_quote(dial.address.text()), dial.port)};
}

// --- whom it is about ---

// The sender or the master where the packets were seen to end; the master when several fail there
// and nobody gets through; the two ends of a single pair, which nothing tells apart.
std::vector<std::string> blamed(const Case& c, const Readings& readings) {
  const auto all_at = [&](Spot spot) {
    return std::ranges::all_of(readings, [&](const Reading& row) { return row.spot == spot; });
  };
  const NodeFacts* target = readings.front().target;
  const bool all_fail = readings.size() > 1 && readings.size() + 1 >= c.cluster.nodes.size();
  const bool at_target = all_at(Spot::target) || (all_fail && !all_at(Spot::sender));
  if (target != nullptr && at_target) return {target->host};
  std::vector<std::string> nodes;
  for (const Reading& reading : readings) nodes.push_back(reading.from->host);
  if (target != nullptr && nodes.size() == 1 && !all_at(Spot::sender) &&
      target != readings.front().from) {
    nodes.push_back(target->host);
  }
  return nodes;
}

Finding about(const Case& c, const Readings& readings, std::string code, std::string summary) {
  Finding finding = blocker(std::move(code), std::move(summary));
  finding.certainty = std::ranges::min(readings, {}, &Reading::certainty).certainty;
  finding.subjects.nodes = blamed(c, readings);
  for (const Reading& reading : readings) {
    if (reading.target != nullptr) {
      finding.subjects.pairs.emplace_back(reading.from->host, reading.target->host);
    }
    finding.evidence.push_back(dialled(reading, "a connection"));
  }
  add_rules(readings, finding.evidence);
  return finding;
}

// --- mending ---

PortRange port_of(const Reading& reading) {
  return {reading.dial->port, reading.dial->port};
}

std::vector<Fix> open_the_way(const Readings& readings) {
  std::vector<Fix> fixes;
  Readings at_target;
  Readings between;
  for (const Reading& reading : readings) {
    if (reading.spot == Spot::sender) add_new(fixes, let_out(reading, port_of(reading)));
    if (reading.spot == Spot::target || reading.spot == Spot::unknown) at_target.push_back(reading);
    if (reading.spot == Spot::between || reading.spot == Spot::unknown) between.push_back(reading);
  }
  if (!at_target.empty()) {
    add_new(fixes, let_in(at_target, port_of(at_target.front()), true));
  }
  if (!between.empty()) {
    const Reading& first = between.front();
    if (in_a_pod(first.target)) fixes.push_back(look_at_policies(*first.target));
    fixes.push_back(ask_the_network(first.target == nullptr ? first.from->host : first.target->host,
                                    "TCP to " + end_point(*first.dial), senders(between)));
  }
  return fixes;
}

// --- the findings ---

std::string where_it_ends(const Readings& readings, std::string_view verb) {
  const Reading& first = readings.front();
  const bool one_spot = std::ranges::all_of(
      readings, [&](const Reading& reading) { return reading.spot == first.spot; });
  const std::string target = target_name(first);
  switch (one_spot ? first.spot : Spot::unknown) {
    case Spot::target:
      return fmt::format("by {} itself{}", target, rule_text(first));
    case Spot::sender:
      return fmt::format("on {} already{}", senders(readings), rule_text(first));
    case Spot::between:
      return fmt::format("between {} and {}", senders(readings), target);
    case Spot::unknown:
      break;
  }
  return fmt::format("by a filter on {}, or {} on the way there ({})", target, verb,
                     what_lies_between(first.target));
}

std::string their_connections(const Readings& readings) {
  return fmt::format("connections from {} to {}MASTER_PORT {}", senders(readings),
                     std::ranges::all_of(readings, &Reading::itself) ? "its own " : "",
                     readings.front().dial->port);
}

// Of connections that open: by whose rule the data ends, or by whom it may.
std::string what_comes_after(const Readings& readings, std::string_view verb) {
  const std::string connections = their_connections(readings);
  if (deciding_rules(readings.front()) != nullptr) {
    return fmt::format("{} open, then their data is {} {}", connections, verb,
                       where_it_ends(readings, verb));
  }
  return fmt::format(
      "{} open, then nothing comes through: by a filter on {} or on the way that "
      "lets the handshake pass, or by a proxy that answers for it",
      connections, target_name(readings.front()));
}

std::string what_is_filtered(const Readings& readings, std::string_view verb) {
  if (readings.front().after_connect) return what_comes_after(readings, verb);
  return fmt::format("{} are {} {}", their_connections(readings), verb,
                     where_it_ends(readings, verb));
}

// The peer that the master's name means, where nobody could look at it: null otherwise.
const NodeFacts* unseen_master(const Case& c, const Reading& reading) {
  const NodeFacts* named = find_node(c.cluster, master_of(c)->host);
  if (named == nullptr) named = find_node(c.cluster, reading.dial->address.text());
  return reading.target == nullptr && named != nullptr && !named->reached ? named : nullptr;
}

// Its login was not to be had either: more than one port is closed, maybe all.
void tell_of_login(const NodeFacts& master, const Readings& readings, Finding& finding) {
  finding.summary +=
      fmt::format("; {} was not reached for a login either ({})", master.host, master.not_reached);
  finding.fix = {
      {.node = master.host,
       .kind = Fix::Kind::manual,
       .text = fmt::format(
           "see on {} itself what it drops of {} (`nft list ruleset`, `iptables -S`), or "
           "what lies between: {}; the job needs more than port {}",
           master.host, senders(readings), what_lies_between(nullptr),
           readings.front().dial->port)}};
}

void report_filtered(const Case& c, const Readings& readings, Judge& judge) {
  const bool dropped = readings.front().kind == Kind::dropped;
  const std::string_view verb = dropped ? "dropped" : "rejected";
  Finding finding =
      about(c, readings, fmt::format("rendezvous-port-{}", verb), what_is_filtered(readings, verb));
  finding.fix = open_the_way(readings);
  if (const NodeFacts* master = unseen_master(c, readings.front())) {
    tell_of_login(*master, readings, finding);
  }
  judge.report(std::move(finding));
}

// What keeps the packets off the master, where it is known better than by the outcome.
std::string hindrance(const Reading& reading) {
  if (reading.kind != Kind::unreachable) return {};
  if (!reading.excluded.empty()) return reading.excluded;
  const Dial& dial = *reading.dial;
  return dial.error.empty() ? std::string(slug(dial.outcome)) : dial.error;
}

void mend_each(const Readings& readings, const std::string& text, Finding& finding) {
  for (const Reading& reading : readings) {
    finding.fix.push_back({.node = reading.from->host, .kind = Fix::Kind::manual, .text = text});
  }
}

// A reason that names the master is mended there, once; any other on each sender.
void mend_the_way(const Readings& readings, Finding& finding) {
  const Reading& first = readings.front();
  if (first.excluded.empty()) {
    return mend_each(readings,
                     fmt::format("bring up the link or the route to {}, or set MASTER_ADDR to an "
                                 "address that every node reaches",
                                 target_name(first)),
                     finding);
  }
  const std::string text = "mend that first: " + first.excluded;
  const bool at_master =
      first.target != nullptr && first.excluded.find(first.target->host) != std::string::npos;
  if (!at_master) return mend_each(readings, text, finding);
  finding.fix.push_back({.node = first.target->host, .kind = Fix::Kind::manual, .text = text});
}

void report_unreachable(const Case& c, const Readings& readings, Judge& judge) {
  const Reading& first = readings.front();
  const std::string address = first.dial->address.text();
  Finding finding = about(c, readings, "rendezvous-port-unreachable",
                          fmt::format("{} cannot reach MASTER_ADDR {}: {}", senders(readings),
                                      address, hindrance(first)));
  for (Evidence& row : finding.evidence) {
    row.command =
        fmt::format("ip route get {0}; ping -c 1 {0}; ip neigh show {0}", shell_quote(address));
  }
  mend_the_way(readings, finding);
  judge.report(std::move(finding));
}

void report_wrong_service(const Case& c, const Readings& readings, Judge& judge) {
  const Reading& first = readings.front();
  const std::string target = target_name(first);
  std::string summary = fmt::format("something else than {} answers {} at {}", target,
                                    senders(readings), end_point(*first.dial));
  if (first.after_connect) {
    summary = fmt::format(
        "{} connects to {}, then nothing comes: something else than {} took the "
        "connection, or what follows the handshake is lost",
        senders(readings), end_point(*first.dial), target);
  }
  Finding finding = about(c, readings, "rendezvous-wrong-service", std::move(summary));
  mend_each(readings,
            fmt::format("find who answers for {}: another machine with that address (arping -D), "
                        "a proxy or service mesh, address translation; or set MASTER_ADDR to "
                        "another address of {}",
                        first.dial->address.text(), target),
            finding);
  judge.report(std::move(finding));
}

// --- nobody listens ---

// The rank of the job that has waited longest for this master, on any node.
std::optional<Rank> longest_waiting(const Case& c, const NodeFacts& master) {
  const auto places = by_place(c.cluster, ranks_of_the_job(c));
  const auto here = places.find(master.host);
  if (here == places.end()) return std::nullopt;
  const auto& ranks = here->second;
  if (ranks.empty()) return std::nullopt;
  return std::ranges::max(ranks, {}, [](const Rank& rank) { return rank.process->age_s; });
}

// A process on the master that will open the port: rank 0, or torchrun's agent.
const TrainingProcess* host_of(const NodeFacts& master) {
  if (!master.processes.known()) return nullptr;
  const auto found = std::ranges::find_if(*master.processes, [](const TrainingProcess& process) {
    const bool rank_zero = process.role == ProcessRole::worker && variable(process, "RANK") == "0";
    return process.our_network && (process.role == ProcessRole::agent || rank_zero);
  });
  return found == master.processes->end() ? nullptr : &*found;
}

// A job that starts may keep its workers waiting while rank 0 imports torch.
constexpr double kStartMayTakeS = 60;

void report_not_up(const Case& c, const Readings& readings, Judge& judge) {
  const Reading& first = readings.front();
  if (first.target == nullptr) return;  // a machine that is not ours to look into
  if (judge.see(*first.target, "sockets", first.target->sockets) == nullptr) return;
  if (judge.see(*first.target, "processes", first.target->processes) == nullptr) return;
  const TrainingProcess* host = host_of(*first.target);
  const auto waiting = longest_waiting(c, *first.target);
  const bool stuck = host == nullptr && waiting && waiting->process->age_s >= kStartMayTakeS;
  bool by_family = false;
  const std::string port = fmt::to_string(first.dial->port);
  std::string summary =
      fmt::format("{} answers at MASTER_PORT {} with a reset: reachable, nobody listens there yet",
                  first.target->host, port);
  if (loopback_listener(*first.target, first.dial->port) != nullptr) {
    summary = fmt::format(
        "{} answers at MASTER_PORT {} with a reset: what listens there is bound to loopback and "
        "takes connections of {} itself only",
        first.target->host, port, first.target->host);
  } else if (v6_listener(*first.target, first.dial->address, first.dial->port) != nullptr) {
    summary = fmt::format(
        "{} answers at MASTER_PORT {} with a reset: what listens there takes IPv6 only while "
        "MASTER_ADDR leads to {}, or came or went meanwhile",
        first.target->host, port, first.dial->address.text());
    by_family = true;
  } else if (host != nullptr) {
    summary += fmt::format(" (pid {} has not opened it)", host->pid);
  } else if (stuck) {
    summary =
        fmt::format("rank 0 is not up: rank {} on {} waits for {} s, nobody on {} opens port {}",
                    variable(*waiting->process, "RANK").value_or("?"), waiting->node->host,
                    static_cast<int>(waiting->process->age_s), first.target->host, port);
  }
  Finding finding = about(c, readings, "rendezvous-not-up", std::move(summary));
  finding.severity = stuck ? Severity::blocker : Severity::notice;
  finding.certainty = by_family && !stuck ? Certainty::possible : Certainty::likely;
  finding.subjects.nodes = {first.target->host};
  if (by_family) {
    finding.fix.push_back({.node = first.target->host,
                           .kind = Fix::Kind::manual,
                           .text = "if it is there and stays: set MASTER_ADDR to an IPv6 address "
                                   "of that node, or let its listener take IPv4, "
                                   "too (`sysctl net.ipv6.bindv6only` must be 0)"});
  } else if (stuck) {
    finding.fix.push_back({.node = first.target->host,
                           .kind = Fix::Kind::manual,
                           .text = fmt::format("start rank 0 on {}, or see in its log why it ended",
                                               first.target->host)});
  }
  judge.report(std::move(finding));
}

// --- the check ---

void report(const Case& c, Kind kind, const Readings& readings, Judge& judge) {
  switch (kind) {
    case Kind::dropped:
    case Kind::rejected:
      return report_filtered(c, readings, judge);
    case Kind::unreachable:
      return report_unreachable(c, readings, judge);
    case Kind::refused:
      return report_not_up(c, readings, judge);
    case Kind::wrong_service:
      return report_wrong_service(c, readings, judge);
  }
}

void run(const Case& c, Judge& judge) {
  if (!meets_others(c)) return;
  const Master* master = master_of(c);
  if (master == nullptr) return note_unsaid(c, judge);
  // One finding for those who fail alike, for the same reason.
  std::map<std::tuple<Kind, std::string, std::string, bool>, Readings> groups;
  for (const NodeFacts& node : c.cluster.nodes) {
    const Decisive decisive = decisive_dial(c.cluster, node);
    if (!decisive.tried && node.host != master->node) note_untested_master(c.cluster, node, judge);
    if (decisive.dial == nullptr) continue;
    const Reading reading = reading_of(node, find_node(c.cluster, decisive.to), *decisive.dial);
    note_doubt(reading, judge);
    const bool own_output = reading.itself() && reading.spot == Spot::sender;
    groups[{reading.kind, decisive.dial->address.text(), hindrance(reading), own_output}].push_back(
        reading);
  }
  for (auto& [key, readings] : groups) {
    std::ranges::stable_sort(readings, {}, &Reading::itself);  // the peers speak for all
    report(c, std::get<Kind>(key), readings, judge);
  }
}

// --- the catalogue ---

// One filter stops them all, and the job meets it at MASTER_PORT first.
constexpr std::string_view kDroppedToo[] = {"net-ephemeral-dropped"};
constexpr std::string_view kRejectedToo[] = {"net-ephemeral-rejected"};

constexpr Page kDroppedPage{
    .meaning =
        "A packet filter swallows what comes for MASTER_PORT: the ranks wait for their "
        "time-out (`The client socket has timed out after Ns while trying to connect`), "
        "rank 0 for ever. A full accept queue, a full connection tracking table and strict "
        "rp_filter look the same; they are named instead where they are the reason.",
    .confirm =
        "`nc -vz -w 3 MASTER_ADDR MASTER_PORT` hangs; `tcpdump -ni any tcp port MASTER_PORT` on "
        "the master shows whether the packets arrive. `nft list ruleset`, `iptables -S`, "
        "`ufw status`, `firewall-cmd --list-all` show the node's own rules.",
    .fix =
        "One rule for these peers and this port, through the tool that owns the filter. Where the "
        "packets never arrive: the security group, NetworkPolicy or switch ACL between.",
    .verify =
        "`nc -vz -w 3 MASTER_ADDR MASTER_PORT` says refused (nobody listens yet) or succeeded."};
constexpr Page kRejectedPage{
    .meaning =
        "A packet filter answers in the master's name: a reset though somebody listens, or an "
        "ICMP error that no TCP stack sends for a closed port.",
    .confirm =
        "`nc -vz MASTER_ADDR MASTER_PORT` fails at once while `ss -ltn sport = :MASTER_PORT` on "
        "the master shows a listener; look for `reject` in `nft list ruleset`, `iptables -S`.",
    .fix =
        "One rule for these peers and this port, before the rule that rejects, through the tool "
        "that owns the filter.",
    .verify = "`nc -vz MASTER_ADDR MASTER_PORT` succeeds while something listens there."};
constexpr Page kUnreachablePage{
    .meaning =
        "No packet of ours gets to the master: no route, nobody answers for its address, its "
        "link is down, or it cannot take one more connection.",
    .confirm = "`ip route get MASTER_ADDR`, `ping MASTER_ADDR`, `ip neigh show MASTER_ADDR`.",
    .fix = "Mend the link or the route, or set MASTER_ADDR to an address that every node reaches.",
    .verify = "`ping -c 1 MASTER_ADDR` is answered on every node."};
constexpr Page kNotUpPage{
    .meaning =
        "The master answers with a reset: reachable, but nobody listens at MASTER_PORT. Before "
        "the job starts that is as it should be. While its ranks wait, rank 0 has not started, "
        "has died, or runs elsewhere.",
    .confirm = "`ss -ltn sport = :MASTER_PORT` on the master; `pgrep -af train.py` there.",
    .fix = "Start rank 0 on that node, or read in its log why it ended.",
    .verify = "`ss -ltn sport = :MASTER_PORT` on the master prints a listener."};
constexpr Page kWrongPage{
    .meaning =
        "A connection opens, but not to the master's own listener: another machine has the "
        "address, or a proxy, a service mesh or address translation stands in its place.",
    .confirm =
        "`arping -D -I LINK MASTER_ADDR`; `ip neigh show MASTER_ADDR` against `ip link` there.",
    .fix = "Give the address to one machine only, or use one that nothing translates.",
    .verify = "`distdoctor check --peers ...` gets its own answer back from MASTER_ADDR."};

constexpr Code kCodes[] = {
    {.id = "rendezvous-port-dropped",
     .fault_class = FaultClass::firewall,
     .worst = Severity::blocker,
     .title = "Connections to MASTER_PORT are dropped",
     .causes = kDroppedToo,
     .page = kDroppedPage},
    {.id = "rendezvous-port-rejected",
     .fault_class = FaultClass::firewall,
     .worst = Severity::blocker,
     .title = "Connections to MASTER_PORT are rejected",
     .causes = kRejectedToo,
     .page = kRejectedPage},
    {.id = "rendezvous-port-unreachable",
     .fault_class = FaultClass::master_unreachable,
     .worst = Severity::blocker,
     .title = "MASTER_ADDR cannot be reached",
     .causes = {},
     .page = kUnreachablePage},
    {.id = "rendezvous-not-up",
     .fault_class = FaultClass::rank_missing,
     .worst = Severity::blocker,
     .title = "Nobody listens at MASTER_PORT",
     .causes = {},
     .page = kNotUpPage},
    {.id = "rendezvous-wrong-service",
     .fault_class = FaultClass::port_in_use,
     .worst = Severity::blocker,
     .title = "Something else answers at MASTER_PORT",
     .causes = {},
     .page = kWrongPage},
};

}  // namespace

extern const Check rendezvous_port_reachable{
    .title = "Every node can connect to MASTER_ADDR:MASTER_PORT", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
