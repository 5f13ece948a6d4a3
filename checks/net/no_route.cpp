// Every node needs a route to what the others announce, and to MASTER_ADDR.
#include "chosen.h"
#include "routes.h"

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

std::optional<Fix> take_away(const Stuck& stuck) {
  const Route* route = forbidding(stuck);
  if (route == nullptr) return std::nullopt;
  std::string command = fmt::format("{} route del {} {}", ip_command(stuck.to), slug(route->kind),
                                    prefix_text(route->destination, route->prefix));
  constexpr int kMain = 254;
  if (route->table != kMain) command += fmt::format(" table {}", route->table);
  return Fix{.node = stuck.node->host,
             .kind = Fix::Kind::shell,
             .command = std::move(command),
             .text = "as root; find who sets it, or it comes back"};
}

// The route that the kernel makes itself when a link gets such an address.
std::optional<Fix> put_back(const Stuck& stuck) {
  if (!stuck.node->links.known()) return std::nullopt;
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

// A node without any address of the family has no routes of it either: net/address_family.
bool of_another_family(const Stuck& stuck) {
  return forbidding(stuck) == nullptr && !speaks(*stuck.node, stuck.to.v6);
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  auto all = stuck_by_routing(c.cluster);
  std::erase_if(all, by_policy_rule);
  std::erase_if(all, of_another_family);
  for (const auto& rows : by_node(all)) report(c, rows, judge);
}

constexpr std::string_view kCauses[] = {"net-peer-unreachable", "net-one-way-dropped",
                                        "net-ephemeral-dropped", "rendezvous-port-unreachable",
                                        "rendezvous-port-dropped"};
constexpr Page kPage{
    .meaning =
        "The node's own routing table has no way to an address that it must connect to, or an "
        "`unreachable`, `prohibit` or `blackhole` route forbids it: `Network is unreachable`, "
        "`No route to host` at once.",
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
