// torchrun's c10d rendezvous: exactly one node must take the endpoint for its own and host it.
#include <distdoctor/check.h>

#include "mend.h"

#include <utility>

namespace distdoctor::checks {
namespace {

struct Claims {
  std::vector<const NodeFacts*> yes;
  std::vector<const NodeFacts*> no;
  bool all_known = true;
};

Claims claims_of(const Case& c, Judge& judge) {
  Claims claims;
  for (const NodeFacts& node : c.cluster.nodes) {
    const Prediction* prediction = find_prediction(c.cluster, node.host);
    const bool* hosts = prediction == nullptr
                            ? nullptr
                            : judge.see(node, "torchrun.endpoint", prediction->hosts_endpoint);
    claims.all_known = claims.all_known && hosts != nullptr;
    if (hosts != nullptr) (*hosts ? claims.yes : claims.no).push_back(&node);
  }
  return claims;
}

Evidence claim(const Case& c, const NodeFacts& node, bool claims) {
  const Master& master = *master_of(c);
  const std::string hostname = node.identity.known() ? node.identity->hostname : node.host;
  return {
      .node = node.host,
      .fact = "torchrun.endpoint",
      .observed = fmt::format("{} takes {} {}", hostname, master.host,
                              claims ? "for itself" : "for another machine"),
      .expected = claims ? "one host only" : "one host",
      .context = std::string(slug(node.context)),
      .command = fmt::format("hostname; getent ahosts {}; ip -br addr", shell_quote(master.host))};
}

std::string hosts_of(const std::vector<const NodeFacts*>& nodes) {
  std::vector<std::string> hosts;
  for (const NodeFacts* node : nodes) hosts.push_back(node->host);
  return fmt::format("{}", fmt::join(hosts, ", "));
}

// An address that one node has on a link is recognised by that node and by no other.
Fix name_one_host(const Case& c, const NodeFacts& node) {
  const auto address = address_for_peers(c.cluster, node);
  return set_master(c, "*", "MASTER_ADDR", address ? address->text() : node.host,
                    "an address of " + node.host + ", which then hosts the rendezvous");
}

// A machine beside the peers may host it.
bool somebody_answers(const Case& c) {
  return std::ranges::any_of(c.cluster.pairs, [](const PairFacts& pair) {
    return std::ranges::any_of(pair.dials, [](const Dial& dial) {
      return dial.purpose == Purpose::master && dial.outcome == Outcome::ok && !dial.ours;
    });
  });
}

void judge_unclaimed(const Case& c, const Claims& claims, Judge& judge) {
  if (!claims.yes.empty() || !claims.all_known || claims.no.empty()) return;
  if (somebody_answers(c)) return;
  const Master& master = *master_of(c);
  Finding finding =
      blocker("rendezvous-endpoint-unclaimed",
              fmt::format("no node takes --rdzv_endpoint {} for itself: nobody hosts the "
                          "rendezvous",
                          master.host));
  for (const NodeFacts* node : claims.no) finding.evidence.push_back(claim(c, *node, false));
  const NodeFacts* meant = find_node(c.cluster, master.node);
  finding.fix.push_back(name_one_host(c, meant == nullptr ? *claims.no.front() : *meant));
  judge.report(std::move(finding));
}

void judge_claimed_twice(const Case& c, const Claims& claims, Judge& judge) {
  if (claims.yes.size() < 2) return;
  const Master& master = *master_of(c);
  Finding finding = blocker(
      "rendezvous-endpoint-claimed-twice",
      fmt::format("{} each take --rdzv_endpoint {} for themselves: they wait apart from each other",
                  hosts_of(claims.yes), master.host));
  for (const NodeFacts* node : claims.yes) {
    finding.subjects.nodes.push_back(node->host);
    finding.evidence.push_back(claim(c, *node, true));
  }
  const NodeFacts* meant = find_node(c.cluster, master.node);
  if (meant == nullptr) meant = find_node(c.cluster, master.host);
  finding.fix.push_back(name_one_host(c, meant == nullptr ? *claims.yes.front() : *meant));
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const Master* master = master_of(c);
  // Alone nobody sees which node takes the endpoint for itself.
  if (looks_alone(c) || !meets_others(c) || master == nullptr || !master->endpoint) return;
  if (only_the_jobs_shell_knows(master->host)) return;
  const Claims claims = claims_of(c, judge);
  judge_unclaimed(c, claims, judge);
  judge_claimed_twice(c, claims, judge);
}

constexpr std::string_view kCauses[] = {"rendezvous-not-up", "rendezvous-port-dropped",
                                        "rendezvous-port-rejected", "rendezvous-port-unreachable",
                                        "rendezvous-addr-unresolvable"};
constexpr Page kUnclaimedPage{
    .meaning =
        "With --rdzv_backend=c10d each torchrun compares the endpoint's host with its own "
        "hostname and addresses, to find out who opens the store. If nobody recognises "
        "itself all of them wait as clients: `The connection to the C10d store has failed`.",
    .confirm =
        "`hostname`, `getent ahosts ENDPOINT_HOST` and `ip -br addr` on the node that should "
        "host it.",
    .fix =
        "Name the host by an address that it has, or say so: `--rdzv_conf is_host=1` on that node "
        "and `is_host=0` on the others.",
    .verify = "`ss -ltn sport = :29400` on that node shows a listener while torchrun runs."};
constexpr Page kTwicePage{
    .meaning =
        "Several nodes take the endpoint for themselves, by a loopback line for its name, by "
        "`localhost`, or by one hostname given twice. Each opens a store of its own and waits "
        "there for the others.",
    .confirm = "`hostname` and `getent ahosts ENDPOINT_HOST` on each of these nodes.",
    .fix =
        "Name the host by an address that only it has, or say so: `--rdzv_conf is_host=1` on one "
        "node and `is_host=0` on the others.",
    .verify = "`ss -ltn sport = :29400` shows a listener on one node only."};
constexpr Code kCodes[] = {
    {.id = "rendezvous-endpoint-unclaimed",
     .fault_class = FaultClass::rdzv_hostname,
     .worst = Severity::blocker,
     .title = "No node hosts torchrun's rendezvous",
     .causes = kCauses,
     .page = kUnclaimedPage},
    {.id = "rendezvous-endpoint-claimed-twice",
     .fault_class = FaultClass::rdzv_hostname,
     .worst = Severity::blocker,
     .title = "Several nodes host torchrun's rendezvous",
     .causes = kCauses,
     .page = kTwicePage},
};

}  // namespace

extern const Check rendezvous_c10d_endpoint{
    .title = "One node hosts torchrun's rendezvous", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
