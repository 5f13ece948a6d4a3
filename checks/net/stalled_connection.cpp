// The connections of a job that runs are answered.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

// The kernel waits 0.2 s, then twice as long each time: some 3 s without an answer, and more.
constexpr int kTooOften = 4;

// Connections of one node to one peer that nobody answers.
struct Stalled {
  const NodeFacts* from;
  const NodeFacts* to;
  const Connection* worst;
  int count = 1;
};

bool of_the_job(const NodeFacts& node, const Connection& row) {
  return row.owner && std::ranges::any_of(*node.processes, [&](const TrainingProcess& process) {
           return process.pid == row.owner->pid && process.our_network;
         });
}

const NodeFacts* peer_of(const ClusterFacts& cluster,
                         const NodeFacts& node,
                         const Address& remote) {
  if (remote.loopback() || has_address(node, remote)) return nullptr;
  const auto found = std::ranges::find_if(
      cluster.nodes, [&](const NodeFacts& other) { return has_address(other, remote); });
  return found == cluster.nodes.end() ? nullptr : &*found;
}

void add(const NodeFacts& from,
         const NodeFacts& to,
         const Connection& row,
         std::vector<Stalled>& all) {
  const auto same = std::ranges::find_if(
      all, [&](const Stalled& known) { return known.from == &from && known.to == &to; });
  if (same == all.end()) return all.push_back({.from = &from, .to = &to, .worst = &row});
  ++same->count;
  if (row.retransmits > same->worst->retransmits) same->worst = &row;
}

std::string end_of(const Address& address, std::uint16_t port) {
  return fmt::format("{}:{}", address.v6 ? "[" + address.text() + "]" : address.text(), port);
}

void report(const Stalled& row, Judge& judge) {
  const Connection& worst = *row.worst;
  Finding finding{
      .code = "net-connection-stalled",
      .severity = Severity::degraded,
      .certainty = Certainty::likely,
      .symptom = Symptom::hang,
      .subjects = {.nodes = {row.from->host, row.to->host},
                   .pairs = {{row.from->host, row.to->host}}},
      .summary = fmt::format(
          "{} gets no answer from {} on {} of the job", row.from->host, row.to->host,
          row.count == 1 ? std::string("a connection") : fmt::format("{} connections", row.count))};
  finding.evidence.push_back(
      {.node = row.from->host,
       .fact = fmt::format("connection of pid {} to {}", worst.owner ? worst.owner->pid : 0,
                           end_of(worst.remote, worst.remote_port)),
       .observed =
           fmt::format("the same data sent {} times over, without an answer", worst.retransmits),
       .expected = "answers",
       .command = fmt::format("ss -tnopi dst {}", worst.remote.text())});
  finding.fix.push_back(
      {.node = row.to->host,
       .kind = Fix::Kind::manual,
       .text = fmt::format("see whether {} still has that connection (ss -tn) and what became of "
                           "its process; if both are there, something between the two drops what "
                           "it let pass before: a state table that has forgotten it, a route or an "
                           "address that has changed",
                           row.to->host)});
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  std::vector<Stalled> all;
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* sockets = judge.see(node, "sockets", node.sockets);
    if (sockets == nullptr || judge.see(node, "processes", node.processes) == nullptr) continue;
    for (const Connection& row : sockets->connections) {
      const bool waits = row.state == TcpState::established && row.retransmits >= kTooOften;
      if (!waits || !of_the_job(node, row)) continue;
      const NodeFacts* peer = peer_of(c.cluster, node, row.remote);
      if (peer != nullptr) add(node, *peer, row, all);
    }
  }
  for (const Stalled& row : all) report(row, judge);
}

constexpr Page kPage{
    .meaning =
        "A process of the job has an open connection to another node and sends the same data again "
        "and again: nothing comes back. The job hangs there until the kernel gives up, some 15 "
        "minutes later.",
    .confirm =
        "`ss -tnopi dst PEER` on the node, twice: `timer:(on,...,N)` with a growing N, `unacked`.",
    .fix =
        "Find out whether the peer and its process still live. If they do, the path has changed "
        "under the connection: a firewall or NAT that has forgotten it, a moved address, an MTU "
        "that only large segments feel.",
    .verify = "`ss -tno dst PEER` shows no timer whose last figure grows."};
constexpr Code kCodes[] = {{.id = "net-connection-stalled",
                            .fault_class = FaultClass::unknown_connect,
                            .worst = Severity::degraded,
                            .title = "A connection of the job gets no answer",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check net_stalled_connection{
    .title = "Connections of the running job are answered", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
