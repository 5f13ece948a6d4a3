// Every node needs a route to what the others announce, and to MASTER_ADDR.
#include <distdoctor/reading.h>

#include "chosen.h"
#include "routes.h"

#include <utility>

namespace distdoctor::checks {
namespace {

// The route that forbids the way; null where there is simply none.
const Route* forbidding(const Stuck& stuck) {
  return stuck.way && stuck.way->route != nullptr && !leads_out(*stuck.way->route)
             ? stuck.way->route
             : nullptr;
}

std::string observed(const Stuck& stuck) {
  const Route* route = forbidding(stuck);
  if (route == nullptr) return stuck.said;
  return fmt::format("{}: {} {}", stuck.said, slug(route->kind),
                     prefix_text(route->destination, route->prefix));
}

Evidence evidence_of(const Stuck& stuck) {
  return {.node = stuck.node->host,
          .fact = "route to " + stuck.to.text(),
          .observed = observed(stuck),
          .expected = "a route to " + stuck.towards,
          .command =
              fmt::format("{} route get {}", ip_command(stuck.to), shell_quote(stuck.to.text()))};
}

// --- mending ---

constexpr int kMain = 254;

std::optional<Fix> take_away(const Stuck& stuck) {
  const Route* route = forbidding(stuck);
  if (route == nullptr) return std::nullopt;
  std::string command = fmt::format("{} route del {} {}", ip_command(stuck.to), slug(route->kind),
                                    prefix_text(route->destination, route->prefix));
  if (route->table != kMain) command += fmt::format(" table {}", route->table);
  return Fix{.node = stuck.node->host,
             .kind = Fix::Kind::shell,
             .command = std::move(command),
             .text = "as root; find who sets it, or it comes back"};
}

// The route is there: no rule leads to it.
std::optional<Fix> lead_to_main(const Stuck& stuck) {
  const auto& rules = stuck.node->rules;
  if (main_route(stuck) == nullptr || !rules.known()) return std::nullopt;
  const bool led = std::ranges::any_of(*rules, [&](const PolicyRule& rule) {
    return rule.v6 == stuck.to.v6 && rule.action == RuleAction::lookup && rule.table == kMain;
  });
  if (led) return std::nullopt;
  return Fix{.node = stuck.node->host,
             .kind = Fix::Kind::shell,
             .command = ip_command(stuck.to) + " rule add pref 32766 lookup main",
             .text = "as root; the route is there, but no rule leads to the main table"};
}

// The route that the kernel makes itself when a link gets such an address.
std::optional<Fix> put_back(const Stuck& stuck) {
  if (!stuck.node->links.known() || main_route(stuck) != nullptr) return std::nullopt;
  for (const Link& link : *stuck.node->links) {
    for (const LinkAddress& row : link.addresses) {
      const bool fits = link.running && !row.address.link_local() && !row.address.loopback() &&
                        row.address.shares_prefix(stuck.to, row.prefix);
      if (!fits) continue;
      const std::string source = row.address.v6 ? "" : " src " + row.address.text();
      return Fix{.node = stuck.node->host,
                 .kind = Fix::Kind::shell,
                 .command = fmt::format("{} route add {} dev {}{}", ip_command(stuck.to),
                                        prefix_text(network_of(stuck.to, row.prefix), row.prefix),
                                        shell_quote(link.name), source),
                 .text = "as root; the link is in that network, only its route is gone"};
    }
  }
  return std::nullopt;
}

Fix in_words(const Stuck& stuck) {
  return {.node = stuck.node->host,
          .kind = Fix::Kind::manual,
          .text = fmt::format("add a route to {} by the router of {}'s network, or let all nodes "
                              "use a network that they share (NCCL_SOCKET_IFNAME, "
                              "GLOO_SOCKET_IFNAME, MASTER_ADDR)",
                              stuck.to.text(), stuck.node->host)};
}

std::vector<Fix> fixes_for(const std::vector<Stuck>& rows) {
  std::vector<Fix> fixes;
  for (const Stuck& row : rows) {
    auto fix = take_away(row);
    if (!fix) fix = lead_to_main(row);
    if (!fix) fix = put_back(row);
    if (!fix) fix = in_words(row);
    if (std::ranges::find(fixes, *fix) == fixes.end()) fixes.push_back(*std::move(fix));
  }
  return fixes;
}

void report(const Case& c, const std::vector<Stuck>& rows, Judge& judge) {
  Finding finding = about_routing(c, rows, "net-no-route");
  finding.summary =
      fmt::format("{} has no route to {}{}", rows.front().node->host, target_list(rows),
                  forbidding(rows.front()) == nullptr ? "" : ": a route of its own forbids it");
  for (const Stuck& row : rows) finding.evidence.push_back(evidence_of(row));
  finding.fix = fixes_for(rows);
  judge.report(std::move(finding));
}

// --- a route by a router that does not answer ---

struct Astray {
  const NodeFacts* node;
  Address to;
  std::string towards;
  Detour detour;
  std::vector<Purpose> purposes = {};
};

// It failed for somebody, or the kernel has given up on it.
bool dead(const ClusterFacts& cluster, const NodeFacts& node, const Address& router) {
  const bool given_up =
      node.neighbours.known() && std::ranges::any_of(*node.neighbours, [&](const Neighbour& row) {
        return row.address == router && row.mac.empty() &&
               (row.state == "failed" || row.state == "incomplete");
      });
  return given_up || std::ranges::any_of(cluster.pairs, [&](const PairFacts& pair) {
           return pair.from == node.host && std::ranges::any_of(pair.dials, [&](const Dial& dial) {
                    return dial.outcome == Outcome::host_unreachable &&
                           dial.route.gateway == router && !icmp_sender(dial);
                  });
         });
}

void add_astray(const ClusterFacts& cluster,
                const NodeFacts& node,
                const Address& to,
                const Address& from,
                std::pair<std::string, Purpose> whom,
                std::vector<Astray>& all) {
  const auto detour = detour_of(node, to, from);
  if (!detour || !dead(cluster, node, *detour->route->gateway)) return;
  const auto known = std::ranges::find_if(
      all, [&](const Astray& row) { return row.node == &node && row.to == to; });
  if (known != all.end()) return known->purposes.push_back(whom.second);
  all.push_back({&node, to, std::move(whom.first), *detour, {whom.second}});
}

// On the way out, or on the way of the answer.
std::vector<Astray> all_astray(const ClusterFacts& cluster) {
  std::vector<Astray> all;
  for (const PairFacts& pair : cluster.pairs) {
    const NodeFacts* from = find_node(cluster, pair.from);
    const NodeFacts* to = find_node(cluster, pair.to);
    if (from == nullptr || to == nullptr || from == to) continue;
    for (const Dial& dial : pair.dials) {
      const auto& source = source_of(dial);
      if (!source) continue;
      if (dial.outcome == Outcome::host_unreachable) {
        add_astray(cluster, *from, dial.address, *source, {to->host, dial.purpose}, all);
      } else if (dial.outcome == Outcome::timed_out && has_address(*to, dial.address)) {
        add_astray(cluster, *to, *source, dial.address, {from->host, dial.purpose}, all);
      }
    }
  }
  return all;
}

void report_astray(const Case& c, const Astray& row, Judge& judge) {
  const Route& route = *row.detour.route;
  const std::string text = route_text(route);
  Finding finding{.code = "net-no-route",
                  .severity = capped_by_purposes(c.cluster.job, Severity::blocker, row.purposes),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = {row.node->host}, .pairs = {{row.node->host, row.towards}}},
                  .summary = fmt::format(
                      "{} sends what is for {} ({}) to the router {}, which does not answer: route "
                      "{}, though {} is in that network",
                      row.node->host, row.to.text(), row.towards, route.gateway->text(), text,
                      row.detour.near)};
  finding.evidence.push_back(
      {.node = row.node->host,
       .fact = "route to " + row.to.text(),
       .observed = text,
       .expected = "the route of " + row.detour.near,
       .command = fmt::format("{0} route get {1}; {0} neigh show {2}", ip_command(row.to),
                              shell_quote(row.to.text()), shell_quote(route.gateway->text()))});
  std::string command =
      fmt::format("{} route del {}/{} via {} dev {}", ip_command(row.to), route.destination.text(),
                  route.prefix, route.gateway->text(), shell_quote(route.interface));
  if (route.table != kMain) command += fmt::format(" table {}", route.table);
  finding.fix = {{.node = row.node->host,
                  .kind = Fix::Kind::shell,
                  .command = std::move(command),
                  .text = "as root; find who sets it (a VPN, DHCP, a script), or it comes back"}};
  judge.report(std::move(finding));
}

// A node without any address of the family has no routes of it either: net/address_family.
bool of_another_family(const Stuck& stuck) {
  return forbidding(stuck) == nullptr && !speaks(*stuck.node, stuck.to.v6);
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  auto all = stuck_by_routing(c.cluster);
  std::erase_if(all, by_policy_rule);
  std::erase_if(all, by_unfollowed_rule);
  std::erase_if(all, to_no_machine);
  std::erase_if(all, of_another_family);
  for (const auto& rows : by_node(all)) report(c, rows, judge);
  for (const Astray& row : all_astray(c.cluster)) report_astray(c, row, judge);
}

constexpr std::string_view kCauses[] = {"net-peer-unreachable", "net-one-way-dropped",
                                        "net-ephemeral-dropped", "rendezvous-port-unreachable",
                                        "rendezvous-port-dropped"};
constexpr Page kPage{
    .meaning =
        "The node's own routing table has no way to an address that it must connect to, or an "
        "`unreachable`, `prohibit` or `blackhole` route forbids it: `Network is unreachable`, "
        "`No route to host` at once. Or a route sends what is for a node of its own network to a "
        "router that does not answer.",
    .confirm = "`ip route get ADDRESS`; `ip route show table all`.",
    .fix =
        "Take the forbidding route away, put back the route of the link, or add one by the router.",
    .verify = "`ip route get ADDRESS` prints a link, and `ping ADDRESS` is answered."};
constexpr Code kCodes[] = {{.id = "net-no-route",
                            .fault_class = FaultClass::no_route,
                            .worst = Severity::blocker,
                            .title = "A node has no route to another one",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_no_route{.title = "Every node has a route to the others",
                                .codes = kCodes,
                                .run = run,
                                .needs = Needs::pairs};

}  // namespace distdoctor::checks
