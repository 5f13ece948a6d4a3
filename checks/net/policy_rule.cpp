// Policy rules must not send the job's traffic into a table that leads nowhere.
#include "routes.h"

namespace distdoctor::checks {
namespace {

// "from 10.0.0.0/8 to 10.20.0.0/24", as ip-rule(8) writes the selector.
std::string selector(const PolicyRule& rule) {
  std::string text;
  if (rule.from) text += " from " + prefix_text(*rule.from, rule.from_prefix);
  if (rule.to) text += " to " + prefix_text(*rule.to, rule.to_prefix);
  if (!rule.in_interface.empty()) text += " iif " + shell_quote(rule.in_interface);
  return text;
}

std::string action(const PolicyRule& rule) {
  return rule.action == RuleAction::lookup ? fmt::format("lookup {}", rule.table)
                                           : std::string(slug(rule.action));
}

std::string rule_text(const PolicyRule& rule) {
  return fmt::format("{}:{} {}", rule.priority, selector(rule), action(rule));
}

Evidence evidence_of(const Stuck& stuck) {
  const PolicyRule& rule = *stuck.way->rule;
  const Route* route = stuck.way->route;
  std::string end;
  if (route != nullptr) {
    end = fmt::format(
        ", where {} {} stands", slug(route->kind),
        route->prefix == 0 ? "default" : prefix_text(route->destination, route->prefix));
  }
  return {.node = stuck.node->host,
          .fact = "rule for " + stuck.to.text(),
          .observed = rule_text(rule) + end,
          .expected = "rules that lead to " + stuck.towards,
          .command = fmt::format("{} rule show; {} route get {}", ip_command(stuck.to),
                                 ip_command(stuck.to), shell_quote(stuck.to.text()))};
}

Fix take_away(const Stuck& stuck) {
  const PolicyRule& rule = *stuck.way->rule;
  return {.node = stuck.node->host,
          .kind = Fix::Kind::shell,
          .command = fmt::format("{} rule del pref {}{} {}", ip_command(stuck.to), rule.priority,
                                 selector(rule), action(rule)),
          .text = "as root; find who sets it (a VPN, a CNI, NetworkManager), or it comes back"};
}

void report(const Case& c, const std::vector<Stuck>& rows, Judge& judge) {
  Finding finding = about_routing(c, rows, "net-policy-rule");
  finding.summary =
      fmt::format("a policy rule on {} keeps traffic from {}: {}", rows.front().node->host,
                  target_list(rows), rule_text(*rows.front().way->rule));
  for (const Stuck& row : rows) {
    finding.evidence.push_back(evidence_of(row));
    Fix fix = take_away(row);
    if (std::ranges::find(finding.fix, fix) == finding.fix.end()) {
      finding.fix.push_back(std::move(fix));
    }
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  auto all = stuck_by_routing(c.cluster);
  std::erase_if(all, [](const Stuck& row) { return !by_policy_rule(row); });
  for (const auto& rows : by_node(all)) report(c, rows, judge);
}

constexpr std::string_view kCauses[] = {
    "net-no-route",          "net-peer-unreachable",        "net-one-way-dropped",
    "net-ephemeral-dropped", "rendezvous-port-unreachable", "rendezvous-port-dropped"};
constexpr Page kPage{
    .meaning =
        "`ip rule` sends the traffic for a peer to a routing table without a way there, or "
        "forbids it outright. The main table may look right: it is never asked.",
    .confirm = "`ip rule show`, `ip route show table N`, `ip route get ADDRESS`.",
    .fix = "Take the rule away, or give its table a route.",
    .verify = "`ip route get ADDRESS` prints a link, and `ping ADDRESS` is answered."};
constexpr Code kCodes[] = {{.id = "net-policy-rule",
                            .fault_class = FaultClass::no_route,
                            .worst = Severity::blocker,
                            .title = "A policy rule leads nowhere",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_policy_rule{
    .title = "Policy rules lead to the peers", .codes = kCodes, .run = run, .needs = Needs::pairs};

}  // namespace distdoctor::checks
