// The addresses that Gloo announces must be there, and of use to the other nodes.
#include <distdoctor/check.h>

#include "chosen.h"

namespace distdoctor::checks {
namespace {

constexpr const char* kVariable = "GLOO_SOCKET_IFNAME";

struct Accused {
  const NodeFacts* node;
  const Prediction* prediction;
  Choice choice;  // nothing where Gloo finds none
  std::string text;
  std::string command;
  const NodeFacts* seen_by;
};

// Loopback by way of the hostname is another fault: net/hostname_loopback.
std::optional<Accused> accuse(const Case& c, const NodeFacts& node, const Prediction& prediction) {
  const bool alternative = !recommended(c, kVariable).empty();
  for (const Choice& choice : prediction.gloo->devices) {
    if (choice.address.loopback()) {
      if (prediction.gloo->reason != GlooReason::variable) continue;
      return Accused{&node,
                     &prediction,
                     choice,
                     choice_text(choice) + ", loopback",
                     "ip -br addr show dev " + shell_quote(choice.interface),
                     &node};
    }
    const auto row = worthless(c.cluster, node, choice, alternative);
    if (!row) continue;
    return Accused{&node,
                   &prediction,
                   choice,
                   fmt::format("{} announces {}: {}", node.host, choice_text(choice), row->why),
                   dial_command(choice, *row),
                   row->witness};
  }
  return std::nullopt;
}

std::string hosts_of(const std::vector<Accused>& all) {
  std::vector<std::string> hosts;
  for (const Accused& row : all) hosts.push_back(row.node->host);
  return fmt::format("{}", fmt::join(hosts, ", "));
}

// What makes Gloo choose as it does.
std::string cause_of(const Accused& row) {
  if (row.prediction->gloo->reason == GlooReason::variable) {
    return "with " + said(*row.prediction, kVariable);
  }
  const bool known = row.node->identity.known();
  return fmt::format("by its hostname {}", known ? row.node->identity->hostname : row.node->host);
}

Evidence why_chosen(const Accused& row) {
  if (row.prediction->gloo->reason == GlooReason::variable) {
    return {.node = row.node->host,
            .fact = kVariable,
            .observed = said(*row.prediction, kVariable),
            .expected = "names of interfaces that all nodes reach",
            .command = see_setting(*row.prediction, kVariable)};
  }
  return {.node = row.node->host,
          .fact = "hostname",
          .observed = "leads to " + row.choice.address.text(),
          .expected = "an address that all nodes reach",
          .context = std::string(slug(row.node->context)),
          .command = "getent ahosts \"$(hostname)\""};
}

void report(const Case& c, Finding finding, const std::vector<Accused>& all, Judge& judge) {
  finding.severity = capped_by_use(Severity::blocker, c.cluster.job.gloo);
  finding.summary += hangs_on_use(c.cluster.job.gloo, "Gloo", "gloo");
  for (const Accused& row : all) {
    finding.subjects.nodes.push_back(row.node->host);
    finding.evidence.push_back({.node = row.seen_by->host,
                                .fact = "gloo.interface",
                                .observed = row.text,
                                .expected = "an address that the other nodes reach",
                                .command = row.command});
  }
  finding.evidence.push_back(why_chosen(all.front()));
  finding.fix = set_variable(c, kVariable,
                             "set GLOO_SOCKET_IFNAME to the whole name of an interface that all "
                             "nodes reach each other by (`ip -br addr`)");
  judge.report(std::move(finding));
}

Finding finding_of(const char* code, Symptom symptom, std::string summary) {
  return {.code = code,
          .severity = Severity::blocker,
          .certainty = Certainty::proved,
          .symptom = symptom,
          .summary = std::move(summary)};
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.gloo == Use::no) return;
  const bool alone = c.cluster.nodes.size() < 2;
  std::vector<Accused> lost;
  std::vector<Accused> apart;
  for (const NodeFacts& node : c.cluster.nodes) {
    const Prediction* prediction = find_prediction(c.cluster, node.host);
    if (prediction == nullptr) continue;
    const auto* gloo = judge.see(node, "gloo.interface", prediction->gloo);
    if (gloo == nullptr) continue;
    if (!gloo->error.empty()) {
      lost.push_back({&node, prediction, {}, gloo->error, "ip -br addr", &node});
    } else if (auto accused = alone ? std::nullopt : accuse(c, node, *prediction)) {
      apart.push_back(*std::move(accused));
    }
  }
  if (!lost.empty()) {
    report(c,
           finding_of("net-gloo-ifname-no-match", Symptom::crash,
                      fmt::format("{} Gloo finds no address on {}", cause_of(lost.front()),
                                  hosts_of(lost))),
           lost, judge);
  }
  if (!apart.empty()) {
    report(c,
           finding_of("net-gloo-interface-unreachable", Symptom::hang,
                      fmt::format("{} Gloo takes {} on {}, which other nodes do not reach",
                                  cause_of(apart.front()), apart.front().choice.interface,
                                  hosts_of(apart))),
           apart, judge);
  }
}

constexpr std::string_view kCauses[] = {"net-ephemeral-dropped", "net-ephemeral-rejected",
                                        "net-peer-unreachable", "net-no-route",
                                        "collective-interface-wrong"};
constexpr Page kNoMatchPage{
    .meaning =
        "Gloo wants the whole name of an interface that has an address, or several of them with "
        "commas; prefixes and `^` or `=` are NCCL's. Otherwise it stops: `Unable to find address "
        "for: NAME`; the other nodes only say `Socket Timeout`.",
    .confirm = "`printenv GLOO_SOCKET_IFNAME`; `ip -br addr` on each node.",
    .fix =
        "Set GLOO_SOCKET_IFNAME to an interface that every node has, or unset it. `distdoctor env` "
        "prints a value that was checked.",
    .verify = "The job passes init_process_group."};
constexpr Page kUnreachablePage{
    .meaning =
        "Gloo announces an address that is of use inside one node only: loopback, a docker or "
        "libvirt bridge, a VPN. Of each two ranks one connects to the other; that one is "
        "refused or hangs, and the process group's timeout does not apply to it.",
    .confirm =
        "`printenv GLOO_SOCKET_IFNAME`; without it `getent ahosts \"$(hostname)\"` shows what "
        "Gloo takes; try `nc -vz ADDRESS PORT` from another node.",
    .fix =
        "Set GLOO_SOCKET_IFNAME to the interface by which all nodes reach each other. `distdoctor "
        "env` prints a value that was checked.",
    .verify = "`distdoctor check --peers ...` reaches every announced address."};
constexpr Code kCodes[] = {
    {.id = "net-gloo-ifname-no-match",
     .fault_class = FaultClass::iface_not_exist,
     .worst = Severity::blocker,
     .title = "Gloo finds no address",
     .causes = {},
     .page = kNoMatchPage},
    {.id = "net-gloo-interface-unreachable",
     .fault_class = FaultClass::iface_wrong,
     .worst = Severity::blocker,
     .title = "Gloo announces addresses that others do not reach",
     .causes = kCauses,
     .page = kUnreachablePage},
};

}  // namespace

extern const Check net_gloo_interface{
    .title = "Gloo takes addresses that all nodes reach", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
