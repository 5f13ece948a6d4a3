#include "checks/net/route_worlds.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

PolicyRule to_table_100() {
  return {.priority = 100, .table = 100, .to = addr("10.20.0.0"), .to_prefix = 24};
}
Route nowhere() {
  return {.destination = addr("0.0.0.0"), .kind = RouteKind::blackhole, .table = 100};
}
std::string line(const std::string& seen) {
  return "node1 rule for 10.20.0.10: " + seen +
         ", not rules that lead to node0; ip rule show; ip route get 10.20.0.10";
}
void fails(World& w) {
  at_once(w, 1, 0, Outcome::local_error, {"EINVAL", "Invalid argument"});
}

const std::string kHidden =
    "node1 rule for 10.20.0.10: Invalid argument, though the main table has 10.20.0.0/24 dev eth1; "
    "rules: ";

Verdict by_port(const std::string& fix) {
  Verdict made =
      routing("net-policy-rule",
              "keeps traffic from 10.20.0.10 (node0): 100: by protocol, port, user", "node1",
              {kHidden + "100: by protocol, port, user or the like, not rules that lead to "
                         "node0; ip rule show; ip route get 10.20.0.10 ipproto tcp dport "
                         "32768"},
              {fix});
  made.certainty = likely;
  return made;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a rule by port, which nobody can follow, while the route is there",
     [](World& w) {
       add_rule(w, 1, {.priority = 100, .action = RuleAction::other});
       fails(w);
     },
     {by_port("node1: ip rule del pref 100")}},
    {"another rule has its preference: `ip rule del` might take that one",
     [](World& w) {
       add_rule(w, 1, {.priority = 100, .action = RuleAction::other});
       World::change(w.node(1).rules, [](std::vector<PolicyRule>& rules) {
         rules.push_back(
             {.priority = 100, .table = 77, .from = addr("192.0.2.1"), .from_prefix = 32});
       });
       fails(w);
     },
     {by_port("node1: (manual)")}},
    {"two such rules: a person has to choose",
     [](World& w) {
       add_rule(w, 1, {.priority = 100, .action = RuleAction::other});
       World::change(w.node(1).rules, [](std::vector<PolicyRule>& rules) {
         rules.push_back({.priority = 90, .action = RuleAction::other, .mark = 1});
       });
       fails(w);
     },
     {[] {
       Verdict made =
           routing("net-policy-rule",
                   "100: by protocol, port, user or the like; 90: fwmark 0x1 by protocol", "node1",
                   {kHidden + "100: by protocol, port, user or the like; 90: fwmark 0x1 by "
                              "protocol, port, user or the like, not "
                              "rules that lead to node0; ip rule show; ip route get 10.20.0.10 "
                              "ipproto tcp dport 32768"},
                   {"node1: (manual)"});
       made.certainty = likely;
       return made;
     }()}},
    {"near miss: the kernel's own rule for VRFs",
     [](World& w) {
       add_rule(w, 1, {.priority = 1000, .action = RuleAction::other});
       fails(w);
     }},
    {"a rule into a table with a black hole",
     [](World& w) {
       add_rule(w, 1, to_table_100());
       add_route(w, 1, nowhere());
       fails(w);
     },
     {routing("net-policy-rule",
              "a policy rule on node1 keeps traffic from 10.20.0.10 (node0): 100: to 10.20.0.0/24 "
              "lookup 100",
              "node1",
              {line("100: to 10.20.0.0/24 lookup 100, where blackhole default stands")},
              {"node1: ip rule del pref 100 to 10.20.0.0/24 lookup 100"})}},
    {"a rule that forbids",
     [](World& w) {
       PolicyRule rule = to_table_100();
       rule.action = RuleAction::prohibit;
       add_rule(w, 1, rule);
       at_once(w, 1, 0, Outcome::local_error, {"EACCES", "Permission denied"});
     },
     {routing("net-policy-rule",
              "100: to 10.20.0.0/24 prohibit",
              "node1",
              {line("100: to 10.20.0.0/24 prohibit")},
              {"node1: ip rule del pref 100 to 10.20.0.0/24 prohibit"})}},
    {"it stops the answers: seen from the peer",
     [](World& w) {
       PolicyRule rule{.priority = 90, .table = 100, .from = addr("10.20.0.11"), .from_prefix = 32};
       add_rule(w, 1, rule);
       add_route(w, 1, nowhere());
       unanswered(w, 0, 1);
     },
     {[] {
       Verdict made =
           routing("net-policy-rule", "90: from 10.20.0.11/32 lookup 100", "node1",
                   {line("90: from 10.20.0.11/32 lookup 100, where blackhole default stands")},
                   {"node1: ip rule del pref 90 from 10.20.0.11/32 lookup 100"});
       made.certainty = likely;
       return made;
     }()}},

    {"near miss: the rule is for another network",
     [](World& w) {
       PolicyRule rule = to_table_100();
       rule.to = addr("192.0.2.0");
       add_rule(w, 1, rule);
       add_route(w, 1, nowhere());
       drop_route(w, 1, "10.20.0.0");
       fails(w);
     }},
    {"near miss: its table has no answer, the main one has",
     [](World& w) {
       add_rule(w, 1, to_table_100());
       unanswered(w, 0, 1);
     }},
    {"near miss: rules with marks cannot be followed",
     [](World& w) {
       PolicyRule rule = to_table_100();
       rule.mark = 7;
       add_rule(w, 1, rule);
       add_route(w, 1, nowhere());
       fails(w);
     }},
    {"near miss: the rule is there, and the dials pass",
     [](World& w) {
       add_rule(w, 1, to_table_100());
       add_route(w, 1, nowhere());
     }},
};

TEST_CASE("net/policy_rule") {
  run_cases("net/policy_rule", cases);
}

}  // namespace
}  // namespace distdoctor::testing
