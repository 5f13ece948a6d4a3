// A node whose own name leads to loopback announces 127.x to its peers by way of Gloo.
#include <distdoctor/check.h>

#include "chosen.h"

namespace distdoctor::checks {
namespace {

struct Peer {
  const NodeFacts* node;
  const GlooChoice* gloo;
  Address address;
};

bool by_its_name(const Peer& peer) {
  return peer.gloo->reason != GlooReason::variable && peer.address.loopback();
}

// Of each two ranks the one with the numerically smaller address listens and the larger connects
// (gloo tcp/pair.cc): loopback harms only where it is listened on.
bool listens(const Peer& one, const Peer& other) {
  return !(other.address < one.address);
}

// Whoever would have to connect to this node's loopback; none: it only ever connects itself.
const Peer* turned_away(const Peer& peer, const std::vector<Peer>& all) {
  const auto found = std::ranges::find_if(
      all, [&](const Peer& other) { return other.node != peer.node && listens(peer, other); });
  return found == all.end() ? nullptr : &*found;
}

std::string hostname_of(const NodeFacts& node) {
  return node.identity.known() ? node.identity->hostname : node.host;
}

Evidence row(const Peer& peer, const Peer* victim) {
  const bool fallback = peer.gloo->reason == GlooReason::fallback;
  std::string observed =
      fmt::format("{} {} {}", hostname_of(*peer.node),
                  fallback ? "leads to no address of its own, Gloo falls back to" : "leads to",
                  peer.address.text());
  if (victim != nullptr) {
    observed += fmt::format("; {} ({}) would have to connect to that", victim->node->host,
                            victim->address.text());
  } else {
    observed += ", the larger address of each pair: it connects and is not connected to";
  }
  return {.node = peer.node->host,
          .fact = "hostname",
          .observed = std::move(observed),
          .expected = "an address that the other nodes reach",
          .context = std::string(slug(peer.node->context)),
          .command = "hostname; getent ahosts \"$(hostname)\""};
}

void report(const Case& c,
            const std::vector<Peer>& loops,
            const std::vector<Peer>& all,
            Judge& judge) {
  std::vector<std::string> hosts;
  bool fatal = false;
  Finding finding{.code = "net-hostname-loopback",
                  .severity = Severity::notice,
                  .certainty = Certainty::proved,
                  .symptom = Symptom::hang,
                  .summary = ""};
  for (const Peer& peer : loops) {
    const Peer* victim = turned_away(peer, all);
    fatal = fatal || victim != nullptr;
    hosts.push_back(peer.node->host);
    finding.evidence.push_back(row(peer, victim));
  }
  finding.subjects.nodes = hosts;
  if (fatal) finding.severity = capped_by_use(Severity::blocker, c.cluster.job.gloo);
  finding.summary = fmt::format(
      "the own name of {} leads Gloo to loopback{}", fmt::join(hosts, ", "),
      fatal ? ": other nodes cannot connect to it"
            : ", which works by luck: its address is the largest, and the larger one connects");
  finding.fix =
      set_variable(c, "GLOO_SOCKET_IFNAME",
                   "set GLOO_SOCKET_IFNAME to the interface that all nodes reach each other "
                   "by, or give the hostname its real address in /etc/hosts");
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.gloo == Use::no || c.cluster.nodes.size() < 2) return;
  std::vector<Peer> all;
  for (const NodeFacts& node : c.cluster.nodes) {
    const Prediction* prediction = find_prediction(c.cluster, node.host);
    if (prediction == nullptr) continue;
    const auto* gloo = judge.see(node, "gloo.interface", prediction->gloo);
    if (gloo == nullptr || gloo->devices.empty()) continue;
    all.push_back({&node, gloo, gloo->devices.front().address});
  }
  std::vector<Peer> loops;
  std::ranges::copy_if(all, std::back_inserter(loops), by_its_name);
  if (!loops.empty() && all.size() > 1) report(c, loops, all, judge);
}

constexpr std::string_view kCauses[] = {"net-gloo-interface-unreachable", "net-ephemeral-rejected",
                                        "net-ephemeral-dropped"};
constexpr Page kPage{
    .meaning =
        "Without GLOO_SOCKET_IFNAME Gloo takes the address that the own hostname leads to. Debian "
        "and "
        "Ubuntu write `127.0.1.1 HOSTNAME` into /etc/hosts, so that it announces loopback. Of each "
        "two ranks the one with the larger address connects to the other: with 10.x addresses one "
        "such node works by luck, with 172.x or 192.168.x or on two nodes it hangs.",
    .confirm =
        "`getent ahosts \"$(hostname)\"` on each node prints no 127.x, and prints something.",
    .fix =
        "Set GLOO_SOCKET_IFNAME to the interface of the nodes' common network, or put the "
        "node's real address in the place of 127.0.1.1 in /etc/hosts.",
    .verify =
        "`getent ahosts \"$(hostname)\"` prints the address by which the others know the node."};
constexpr Code kCodes[] = {{.id = "net-hostname-loopback",
                            .fault_class = FaultClass::hostname_loopback,
                            .worst = Severity::blocker,
                            .title = "A node's own name leads to loopback",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_hostname_loopback{
    .title = "No node's own name leads Gloo to loopback", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
