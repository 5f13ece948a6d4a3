// Rank 0 must be able to bind MASTER_PORT: our own listener tried it before.
#include <distdoctor/check.h>
#include <distdoctor/untested.h>

#include "dialled.h"
#include "mend.h"

#include <utility>

namespace distdoctor::checks {
namespace {

// man 7 ip: where net.ipv4.ip_unprivileged_port_start begins by default. Above it something else
// refuses (SELinux), which is not ours to explain.
constexpr std::uint16_t kUnprivileged = 1024;

// What came of our bind(2) on the master's node; empty: it went well, or none was made.
std::string bind_error(const ClusterFacts& cluster, const std::string& node) {
  const auto row = std::ranges::find_if(cluster.untried, [&](const Untried& untried) {
    return untried.node == node && untried.what == kMasterTraffic &&
           untried.why.text.starts_with("bind ");
  });
  return row == cluster.untried.end() ? "" : row->why.text;
}

// Somebody who is seen there is rendezvous/port_owner's.
bool somebody_is_seen(const NodeFacts& node, std::uint16_t port) {
  return !node.sockets.known() || occupied(*node.sockets, port);
}

// A rank 0 that has just come up would have taken the connections of the others.
bool all_refused(const ClusterFacts& cluster) {
  bool tried = false;
  for (const NodeFacts& node : cluster.nodes) {
    for (const Decisive& dialled : dials_to_master(cluster, node)) {
      if (dialled.dial->outcome != Outcome::refused) return false;
      tried = true;
    }
  }
  return tried;
}

bool somebody_gets_through(const ClusterFacts& cluster) {
  return std::ranges::any_of(cluster.nodes, [&](const NodeFacts& node) {
    return std::ranges::any_of(dials_to_master(cluster, node), [](const Decisive& dialled) {
      return dialled.dial->outcome == Outcome::ok;
    });
  });
}

Finding about(const NodeFacts& node, std::string code, std::string summary) {
  Finding finding = blocker(std::move(code), std::move(summary));
  finding.certainty = Certainty::likely;
  finding.symptom = Symptom::crash;
  finding.subjects.nodes = {node.host};
  return finding;
}

Evidence tried(const NodeFacts& node, std::uint16_t port, std::string error) {
  return {
      .node = node.host,
      .fact = fmt::format("bind port {}", port),
      .observed = std::move(error),
      .expected = "a listener of our own, as rank 0 will open one",
      .command = fmt::format(
          "python3 -c \"import socket; socket.create_server(('', {}))\"; ss -tanpB | grep -w {}",
          port, port)};
}

Fix another_port(const Case& c, const NodeFacts& node, std::uint16_t after) {
  const auto port = free_port(node, after);
  return port
             ? set_master(c, "*", "MASTER_PORT", fmt::to_string(*port),
                          fmt::format("nobody holds it on {}", node.host))
             : Fix{.node = "*",
                   .kind = Fix::Kind::manual,
                   .text = fmt::format("choose another MASTER_PORT that is free on {}", node.host)};
}

void report_taken(const Case& c, const NodeFacts& node, const std::string& error, Judge& judge) {
  const std::uint16_t port = master_of(c)->port.value_or(0);
  Finding finding = about(node, "rendezvous-port-taken",
                          fmt::format("MASTER_PORT {} on {} is taken, though nobody listens there: "
                                      "a process has bound it without listen()",
                                      port, node.host));
  finding.evidence.push_back(tried(node, port, error));
  finding.fix.push_back(another_port(c, node, port));
  judge.report(std::move(finding));
}

void report_denied(const Case& c, const NodeFacts& node, const std::string& error, Judge& judge) {
  const std::uint16_t port = master_of(c)->port.value_or(0);
  const std::string user =
      node.identity.known() ? fmt::format("user {}", node.identity->user) : "this user";
  Finding finding = about(node, "rendezvous-port-privileged",
                          fmt::format("{} may not bind MASTER_PORT {} on {}: ports below "
                                      "net.ipv4.ip_unprivileged_port_start are root's",
                                      user, port, node.host));
  finding.evidence.push_back(tried(node, port, error));
  finding.evidence.back().command = "sysctl net.ipv4.ip_unprivileged_port_start; id -un";
  finding.fix.push_back(another_port(c, node, std::max<std::uint16_t>(port, 29'499)));
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (!meets_others(c)) return;
  const Master* master = master_of(c);
  const NodeFacts* node = master == nullptr ? nullptr : find_node(c.cluster, master->node);
  if (node == nullptr || !master->port) return;
  const std::string error = bind_error(c.cluster, node->host);
  const bool denied = error.ends_with("Permission denied");
  if (denied && *master->port < kUnprivileged) return report_denied(c, *node, error, judge);
  const bool in_use = error.ends_with("Address already in use");
  if (in_use && !somebody_is_seen(*node, *master->port) && all_refused(c.cluster)) {
    return report_taken(c, *node, error, judge);
  }
  const bool told = in_use && (somebody_gets_through(c.cluster) ||
                               (node->sockets.known() && somebody_is_seen(*node, *master->port)));
  if (!error.empty() && !told) judge.miss({node->host, "MASTER_PORT", {Why::failed, error}});
}

constexpr std::string_view kCauses[] = {"rendezvous-not-up"};
constexpr Page kTakenPage{
    .meaning =
        "bind(2) at MASTER_PORT fails with EADDRINUSE on rank 0's node, and connections to it are "
        "refused: a process has bound the port and does not listen. Rank 0 ends with `The server "
        "socket has failed to bind to [::]:P (errno: 98 - Address already in use)`.",
    .confirm =
        "`python3 -c \"import socket; socket.create_server(('', MASTER_PORT))\"` on the master; "
        "`ss -tanpB` names such sockets, where iproute2 and kernel are new enough.",
    .fix = "Take another MASTER_PORT, the same on all nodes.",
    .verify = "The command above prints nothing."};
constexpr Page kPrivilegedPage{
    .meaning =
        "Ports below net.ipv4.ip_unprivileged_port_start (1024) are for root: rank 0 ends with "
        "`The server socket has failed to bind ... (errno: 13 - Permission denied)`, the others "
        "are refused until their time-out.",
    .confirm = "`sysctl net.ipv4.ip_unprivileged_port_start` and `id -un` on the master.",
    .fix = "Take a MASTER_PORT from 1024 on, the same on all nodes: 29500 is customary.",
    .verify =
        "`python3 -c \"import socket; socket.create_server(('', MASTER_PORT))\"` as the user."};
constexpr Code kCodes[] = {{.id = "rendezvous-port-taken",
                            .fault_class = FaultClass::port_in_use,
                            .worst = Severity::blocker,
                            .title = "MASTER_PORT cannot be bound: it is in use",
                            .causes = kCauses,
                            .page = kTakenPage},
                           {.id = "rendezvous-port-privileged",
                            .fault_class = FaultClass::rank_misconfig,
                            .worst = Severity::blocker,
                            .title = "MASTER_PORT cannot be bound by this user",
                            .causes = kCauses,
                            .page = kPrivilegedPage}};

}  // namespace

extern const Check rendezvous_port_bind{
    .title = "Rank 0 can bind MASTER_PORT", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
