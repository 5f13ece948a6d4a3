#include <distdoctor/firewall_fix.h>

#include "support/check_cases.h"

#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// A rule of node0 about connections that come in, or what its iptables keep from going out.
Firewall with_rule(std::vector<FilterCondition> conditions, FilterVerdict verdict) {
  return {.chains = {{.family = "inet",
                      .table = "filter",
                      .name = "input",
                      .hook = "input",
                      .rules = {{.conditions = std::move(conditions),
                                 .verdict = verdict,
                                 .packets = 12,
                                 .number = 7,
                                 .text = "tcp dport 29500 counter packets 12 bytes 720 drop"}}}}};
}
FilterCondition port(const std::string& ports) {
  return {.field = FilterField::destination_port, .values = {ports}};
}
FilterCondition sources(const std::vector<std::string>& values) {
  return {.field = FilterField::source, .values = values};
}
void drop(World& w, std::vector<FilterCondition> conditions) {
  w.node(0).firewall = with_rule(std::move(conditions), FilterVerdict::drop);
}
Firewall no_output_to(const std::string& destination) {
  return {.chains = {
              {.tool = FilterTool::iptables,
               .family = "ip",
               .table = "filter",
               .name = "OUTPUT",
               .hook = "output",
               .policy = FilterVerdict::drop,
               .rules = {{.conditions = {{.field = FilterField::state, .values = {"established"}}},
                          .verdict = FilterVerdict::accept,
                          .number = 1},
                         {.conditions = {{.field = FilterField::destination,
                                          .negated = true,
                                          .values = {destination}}},
                          .verdict = FilterVerdict::accept,
                          .number = 2}}}}};
}
// Nobody dialled MASTER_PORT.
void no_master_dials(World& w) {
  for (PairFacts& pair : w.cluster.pairs) {
    std::erase_if(pair.dials, [](const Dial& dial) { return dial.purpose == Purpose::master; });
  }
}
void no_dials(World& w) {
  w.cluster.pairs.clear();
  for (std::size_t i = 0; i < 4; ++i) w.node(i).firewall = Firewall{};
}

Verdict at_node0(Severity severity, const std::string& says) {
  return {.code = "firewall-would-drop",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = {"node0"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: the rules let all pass, and nothing was sent",
     [](World& w) {
       no_dials(w);
       w.node(0).firewall = with_rule({port("29500")}, FilterVerdict::accept);
     }},
    {"nothing is said where the rules cannot be followed",
     [](World& w) {
       no_dials(w);
       drop(w, {port("29500"), {.field = FilterField::other}});
     }},
    {"what was dialled is measured, whatever came of it",
     [](World& w) {
       w.cluster.pairs.push_back({.from = "node0",
                                  .to = "node0",
                                  .dials = {good_dial(Purpose::master, mgmt(0), 29500, mgmt(0))}});
       drop(w, {port("29500")});
     }},
    {"MASTER_PORT was not ours to try",
     [](World& w) {
       no_master_dials(w);
       drop(w, {sources({mgmt(1), mgmt(2)}), port("29500")});
     },
     {[] {
       Verdict made = at_node0(
           blocker,
           "the rules of node0 would drop connections from node1, node2 to its MASTER_PORT 29500: "
           "rule \"tcp dport 29500 counter packets 12 bytes 720 drop\" in chain inet filter input "
           "of nft; no test traffic tried it");
       made.evidence = {
           "node0 nft chain inet filter input, handle 7: tcp dport 29500 counter packets 12 bytes "
           "720 drop (12 packets when it was read), not a rule before it that accepts node1, "
           "node2; nft -a "
           "list chain inet filter input"};
       made.fixes = {
           "node0: nft insert rule inet filter input position 7 ip saddr { 10.10.0.11, "
           "10.10.0.12 } tcp dport 29500 accept"};
       return made;
     }()}},
    {"a rule for the port alone stops the node's own rank, too: it is let in as well",
     [](World& w) {
       no_master_dials(w);
       drop(w, {port("29500")});
     },
     {[] {
       Verdict made =
           at_node0(blocker, "connections from node0, node1, node2, node3 to its MASTER_PORT");
       made.evidence = {
           "node0 nft chain inet filter input, handle 7: tcp dport 29500 counter packets 12 bytes "
           "720 drop (12 packets when it was read), not a rule before it that accepts node0, "
           "node1, node2, node3; "
           "nft "
           "-a list chain inet filter input"};
       made.fixes = {
           "node0: nft insert rule inet filter input position 7 ip saddr { 10.10.0.10, "
           "10.10.0.11, 10.10.0.12, 10.10.0.13 } tcp dport 29500 accept"};
       return made;
     }()}},
    {"what goes out is stopped by a policy: only one library's ports, which the job may do without",
     [](World& w) {
       no_dials(w);
       w.cluster.job.nccl = Use::maybe;
       w.cluster.job.gloo = Use::maybe;
       w.node(0).firewall = no_output_to(mgmt(1));
     },
     {[] {
       Verdict made = at_node0(
           notice,
           "the rules of node0 would drop its connections to ephemeral ports (32768-60999) of "
           "node1: the policy of chain filter OUTPUT of iptables");
       made.evidence = {
           "node0 iptables chain filter OUTPUT, policy: policy drop, not a rule before it that "
           "accepts node1; iptables -vnL OUTPUT --line-numbers"};
       made.fixes = {
           "node0: iptables -A OUTPUT -d 10.10.0.11 -p tcp --dport 32768:60999 -j "
           "ACCEPT"};
       return made;
     }()}},
    {"near miss: a part of the range only",
     [](World& w) {
       no_dials(w);
       drop(w, {port("40000-60999")});
     }},
    {"near miss: it stops nobody of this job",
     [](World& w) {
       no_dials(w);
       drop(w, {sources({"192.0.2.0/24"}), port("29500")});
     }},
    {"it stops rank 0 alone, from its own store",
     [](World& w) {
       no_dials(w);
       drop(w, {sources({mgmt(0)}), port("29500")});
     },
     {[] {
       Verdict made = at_node0(blocker, "connections from node0 to its MASTER_PORT 29500");
       made.evidence = {
           "node0 nft chain inet filter input, handle 7: tcp dport 29500 counter packets 12 bytes "
           "720 drop (12 packets when it was read), not a rule before it that accepts node0; nft "
           "-a list chain inet filter input"};
       made.fixes = {"node0: nft insert rule inet filter input position 7 iifname lo accept"};
       return made;
     }()}},
    {"near miss: it stops a worker's own address, which nobody dials there",
     [](World& w) {
       no_dials(w);
       w.node(1).firewall = with_rule({sources({mgmt(1)}), port("29500")}, FilterVerdict::drop);
     }},
    {"not root on node1, and nothing was sent: a gap",
     [](World& w) {
       no_dials(w);
       w.node(1).firewall = Unknown{.kind = Why::denied};
     },
     {},
     {"node1 firewall"}},
    {"not root on node1, but all was dialled",
     [](World& w) { w.node(1).firewall = Unknown{.kind = Why::denied}; }},
};

TEST_CASE("firewall/would_drop") {
  run_cases("firewall/would_drop", cases);
}

}  // namespace
}  // namespace distdoctor::testing
