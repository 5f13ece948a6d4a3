// Policy rules must not send the job's traffic into a table that leads nowhere.
#include "routes.h"

#include <iterator>

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

// --- rules that nobody can follow from here ---

std::string hidden_rule_text(const PolicyRule& rule) {
  const std::string mark = rule.mark ? fmt::format(" fwmark {:#x}", *rule.mark) : "";
  return fmt::format("{}:{}{} by protocol, port, user or the like", rule.priority, selector(rule),
                     mark);
}

std::string hidden_list(const std::vector<const PolicyRule*>& rules) {
  std::vector<std::string> words;
  for (const PolicyRule* rule : rules) words.push_back(hidden_rule_text(*rule));
  return fmt::format("{}", fmt::join(words, "; "));
}

Evidence hidden_evidence(const Stuck& stuck, const std::string& rules) {
  const Route& route = *main_route(stuck);
  return {
      .node = stuck.node->host,
      .fact = "rule for " + stuck.to.text(),
      .observed = fmt::format("{}, though the main table has {} dev {}; rules: {}", stuck.said,
                              prefix_text(route.destination, route.prefix), route.interface, rules),
      .expected = "rules that lead to " + stuck.towards,
      .command = fmt::format("{0} rule show; {0} route get {1} ipproto tcp dport {2}",
                             ip_command(stuck.to), shell_quote(stuck.to.text()), stuck.port)};
}

// `ip rule del` takes the first one with that preference, whichever it is.
bool alone_in_its_place(const NodeFacts& node, const PolicyRule& rule) {
  return std::ranges::count_if(*node.rules, [&](const PolicyRule& other) {
           return other.v6 == rule.v6 && other.priority == rule.priority;
         }) == 1;
}

Fix mend_hidden(const Stuck& stuck, const std::vector<const PolicyRule*>& rules) {
  const std::string ip = ip_command(stuck.to);
  if (rules.size() == 1 && alone_in_its_place(*stuck.node, *rules.front())) {
    return {.node = stuck.node->host,
            .kind = Fix::Kind::shell,
            .command = fmt::format("{} rule del pref {}", ip, rules.front()->priority),
            .text = "as root; find who sets it (a VPN, a CNI, an agent), or it comes back"};
  }
  return {.node = stuck.node->host,
          .kind = Fix::Kind::manual,
          .text = fmt::format("`{} rule show`: take away (`{} rule del pref N`) or mend the one of "
                              "these that catches the connections: {}",
                              ip, ip, hidden_list(rules))};
}

void report_hidden(const Case& c, const std::vector<Stuck>& rows, Judge& judge) {
  const Stuck& first = rows.front();
  const auto rules = rules_of_connections(first);
  const std::string listed = hidden_list(rules);
  Finding finding = about_routing(c, rows, "net-policy-rule");
  finding.certainty = Certainty::likely;
  finding.summary = fmt::format("a policy rule on {} keeps traffic from {}: {}", first.node->host,
                                target_list(rows), listed);
  for (const Stuck& row : rows) finding.evidence.push_back(hidden_evidence(row, listed));
  finding.fix = {mend_hidden(first, rules)};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  const auto all = stuck_by_routing(c.cluster);
  const auto only = [&](bool (*wanted)(const Stuck&)) {
    std::vector<Stuck> some;
    std::ranges::copy_if(all, std::back_inserter(some), wanted);
    return by_node(some);
  };
  for (const auto& rows : only(by_policy_rule)) report(c, rows, judge);
  for (const auto& rows : only(by_unfollowed_rule)) report_hidden(c, rows, judge);
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
