// MASTER_ADDR must lead every node to the machine that rank 0 runs on.
#include <distdoctor/check.h>

#include "each_task.h"
#include "mend.h"

#include <utility>

namespace distdoctor::checks {
namespace {

// --- what is said of a node's view ---

Evidence seen(const Master& master, const View& view, std::string observed, std::string expected) {
  return {.node = view.node->host,
          .fact = fmt::format("{}.{}", master_name(master), view.host),
          .observed = std::move(observed),
          .expected = std::move(expected),
          .context = std::string(slug(view.node->context)),
          .command = "getent ahosts " + shell_quote(view.host)};
}

std::string hosts_of(const std::vector<View>& views) {
  std::vector<std::string> hosts;
  for (const View& view : views) hosts.push_back(view.node->host);
  return fmt::format("{}", fmt::join(hosts, ", "));
}

// "10.10.0.12 (node2)".
std::string whose(const ClusterFacts& cluster, const View& view) {
  const NodeFacts* peer = peer_at(cluster, *view.node, view.addresses.front());
  return fmt::format("{} ({})", list_of(view.addresses),
                     peer == nullptr ? "no peer's" : peer->host.c_str());
}

// --- what the address or name cannot be ---

// Linux takes a connection to 0.0.0.0 for one to the machine itself.
bool judge_wildcard(const Case& c, const std::vector<View>& views, Judge& judge) {
  const auto literal = Address::parse(master_of(c)->host);
  if (!literal || !literal->unspecified()) return false;
  const Meant meant = meant_by(c, {});
  Finding finding =
      blocker("rendezvous-addr-wildcard", fmt::format("{} is {}: every node takes that for itself",
                                                      master_name(*master_of(c)), literal->text()));
  finding.evidence.push_back(
      seen(*master_of(c), views.front(), literal->text(), "an address of rank 0's node"));
  finding.fix.push_back(point_at(c, *meant.node, meant.why));
  judge.report(std::move(finding));
  return true;
}

// What the kernel of the node would send to many at once, and never connects to.
const char* sent_to_many(const NodeFacts& node, const Address& address) {
  constexpr std::uint8_t kMulticast4 = 0xe0;  // 224.0.0.0/4
  const std::uint8_t first = address.bytes[0];
  if (address.v6 ? first == 0xff : (first & 0xf0U) == kMulticast4) return "a multicast address";
  const bool limited = !address.v6 && std::all_of(address.bytes.begin(), address.bytes.begin() + 4,
                                                  [](std::uint8_t byte) { return byte == 0xff; });
  const bool routed =
      node.routes.known() && std::ranges::any_of(*node.routes, [&](const Route& route) {
        return route.kind == RouteKind::broadcast && route.prefix == address.bits() &&
               route.destination.shares_prefix(address, route.prefix);
      });
  return limited || routed ? "a broadcast address" : nullptr;
}

// No machine has it.
bool judge_broadcast(const Case& c, const std::vector<View>& views, Judge& judge) {
  const Master& master = *master_of(c);
  Finding finding = blocker("rendezvous-addr-broadcast", "");
  finding.symptom = Symptom::crash;
  for (const View& view : views) {
    if (view.answer != Answer::found || view.addresses.empty()) continue;
    const char* kind = sent_to_many(*view.node, view.addresses.front());
    if (kind == nullptr) continue;
    finding.summary =
        fmt::format("{} {} is {}: no machine has it", master_name(master), master.host, kind);
    finding.evidence.push_back(seen(master, view, view.addresses.front().text() + ", " + kind,
                                    "an address of rank 0's node"));
    finding.evidence.back().command = "ip route get " + shell_quote(view.addresses.front().text());
  }
  if (finding.evidence.empty()) return false;
  const Meant meant = meant_by(c, {});
  finding.fix.push_back(point_at(c, *meant.node, meant.why));
  judge.report(std::move(finding));
  return true;
}

bool unresolved(const View& view) {
  return view.answer == Answer::nothing || view.answer == Answer::silence;
}

void judge_unresolvable(const Case& c, const std::vector<View>& views, Judge& judge) {
  std::vector<View> lost;
  std::ranges::copy_if(views, std::back_inserter(lost), unresolved);
  if (lost.empty()) return;
  const Master& master = *master_of(c);
  const auto known = std::ranges::find(views, Answer::found, &View::answer);
  const std::string expected = known == views.end()
                                   ? "an address of rank 0's node"
                                   : list_of(known->addresses) + ", as on " + known->node->host;
  Finding finding = blocker(
      "rendezvous-addr-unresolvable",
      fmt::format("{} cannot resolve {} {}", hosts_of(lost), master_name(master), master.host));
  for (const View& view : lost) {
    const bool silent = view.answer == Answer::silence;
    if (silent) finding.certainty = Certainty::likely;
    finding.subjects.nodes.push_back(view.node->host);
    finding.evidence.push_back(seen(
        master, view, silent ? "no answer from the resolver in time" : "no address", expected));
  }
  const Meant meant = meant_by(c, views);
  finding.fix.push_back(point_at(c, *meant.node, meant.why));
  judge.report(std::move(finding));
}

// --- where it leads ---

void judge_loopback(const Case& c, const std::vector<View>& views, Judge& judge) {
  const Meant meant = meant_by(c, views);
  std::vector<View> trapped;
  for (const View& view : views) {
    const bool at_home = meant.certainty > Certainty::possible && view.node == meant.node;
    if (all_loopback(view) && !at_home) trapped.push_back(view);
  }
  if (trapped.empty()) return;
  const Master& master = *master_of(c);
  Finding finding = blocker("rendezvous-addr-loopback",
                            fmt::format("on {} {} {} means the node itself, where rank 0 is not",
                                        hosts_of(trapped), master_name(master), master.host));
  for (const View& view : trapped) {
    finding.subjects.nodes.push_back(view.node->host);
    finding.evidence.push_back(seen(master, view, list_of(view.addresses) + ", loopback",
                                    "an address of " + meant.node->host));
  }
  finding.fix.push_back(point_at(c, *meant.node, meant.why));
  judge.report(std::move(finding));
}

// Views of one name that are sure about where they lead.
std::vector<View> sure(const Case& c, const std::vector<View>& views) {
  std::vector<View> all;
  std::ranges::copy_if(views, std::back_inserter(all), [&](const View& view) {
    return view.host == master_of(c)->host && !all_loopback(view) &&
           !places(c.cluster, view).empty();
  });
  return all;
}

void judge_split(const Case& c, const std::vector<View>& all, Judge& judge) {
  const auto views = sure(c, all);
  const Meant meant = meant_by(c, views);
  std::vector<View> astray;
  std::ranges::copy_if(views, std::back_inserter(astray), [&](const View& view) {
    return !places(c.cluster, view).contains(meant.node->host);
  });
  if (astray.empty() || astray.size() == views.size()) return;
  const Master& master = *master_of(c);
  Finding finding = blocker("rendezvous-addr-split",
                            fmt::format("{} {} leads {} to another machine than the other nodes",
                                        master_name(master), master.host, hosts_of(astray)));
  finding.certainty = meant.certainty;
  for (const View& view : astray) {
    finding.subjects.nodes.push_back(view.node->host);
    finding.evidence.push_back(
        seen(master, view, whose(c.cluster, view), "an address of " + meant.node->host));
  }
  finding.fix.push_back(point_at(c, *meant.node, meant.why));
  judge.report(std::move(finding));
}

// Whether every node is led to peers, and none of them to this one.
bool all_led_past(const Case& c, const std::vector<View>& views, const std::string& host) {
  return !views.empty() && std::ranges::all_of(views, [&](const View& view) {
    const auto ends = places(c.cluster, view);
    return !ends.contains(host) && std::ranges::any_of(ends, [&](const std::string& end) {
      return find_node(c.cluster, end) != nullptr;
    });
  });
}

void judge_other_node(const Case& c, const std::vector<View>& all, Judge& judge) {
  const auto zero = rank_zero(c);
  const auto views = sure(c, all);
  if (!zero || views.size() != all.size() || !all_led_past(c, views, zero->node->host)) return;
  const Master& master = *master_of(c);
  const std::string other = *places(c.cluster, views.front()).begin();
  Finding finding = blocker("rendezvous-addr-other-node",
                            fmt::format("{} {} leads to {}, but rank 0 is on {}",
                                        master_name(master), master.host, other, zero->node->host));
  finding.subjects.nodes = {zero->node->host, other};
  finding.evidence.push_back({.node = zero->node->host,
                              .fact = "rank 0",
                              .observed = zero->how,
                              .expected = "on " + other,
                              .command = zero->command});
  finding.fix.push_back(point_at(c, *zero->node, "rank 0 is there"));
  judge.report(std::move(finding));
}

bool gives_no_sign(const Dial* dial) {
  return dial->outcome == Outcome::host_unreachable || dial->outcome == Outcome::timed_out;
}

// Refused, reset or answered: a machine is there, if none of ours.
bool judge_nobody(const Case& c, const std::vector<View>& all, Judge& judge) {
  const auto views = sure(c, all);
  const Master& master = *master_of(c);
  Finding finding = blocker("rendezvous-addr-nobody",
                            fmt::format("{} {} is no peer's address, and nothing answers there",
                                        master_name(master), master.host));
  finding.certainty = Certainty::likely;
  for (const View& view : views) {
    for (const Address& address : view.addresses) {
      if (peer_at(c.cluster, *view.node, address) != nullptr) return false;
      const auto dials = dials_to(c.cluster, view.node->host, address);
      if (!std::ranges::all_of(dials, gives_no_sign)) return false;
      if (dials.empty()) continue;
      finding.evidence.push_back(
          seen(master, view, fmt::format("{}: {}", address.text(), slug(dials.front()->outcome)),
               "an address of a peer"));
      finding.evidence.back().command =
          fmt::format("ping -c 1 {0}; ip neigh show {0}", shell_quote(address.text()));
    }
  }
  if (finding.evidence.empty() || views.size() != all.size()) return false;
  const Meant meant = meant_by(c, {});
  finding.fix.push_back(point_at(c, *meant.node, meant.why));
  judge.report(std::move(finding));
  return true;
}

// No address of it is a peer's, by its links or by an answer of our own listener.
bool leads_outside(const ClusterFacts& cluster, const View& view) {
  const auto inside = [&](const Address& address) {
    const auto dials = dials_to(cluster, view.node->host, address);
    return peer_at(cluster, *view.node, address) != nullptr ||
           std::ranges::any_of(dials,
                               [](const Dial* dial) { return connects(dial) && dial->ours; });
  };
  return view.answer == Answer::found && std::ranges::none_of(view.addresses, inside);
}

// Somebody may be there: right only if rank 0 is.
void judge_outside(const Case& c, const std::vector<View>& views, Judge& judge) {
  const Master& master = *master_of(c);
  const bool outside = std::ranges::all_of(views, [&](const View& view) {
    return view.host == master.host && leads_outside(c.cluster, view);
  });
  if (!outside || !all_links_seen(c.cluster)) return;
  Finding finding = blocker(
      "rendezvous-addr-outside",
      fmt::format("{} {} is no peer's address: rank 0 has to run there, or the address has to "
                  "lead on to rank 0",
                  master_name(master), master.host));
  finding.severity = Severity::notice;
  for (const View& view : views) {
    finding.evidence.push_back(
        seen(master, view, list_of(view.addresses) + ", no peer's", "an address of a peer"));
  }
  finding.fix.push_back(
      {.node = "*",
       .kind = Fix::Kind::manual,
       .text =
           fmt::format("if rank 0 runs there, name that node in --peers, too; if {} leads on to "
                       "a peer (a Kubernetes Service, address translation), all is well; else "
                       "set {} to an address of rank 0's node",
                       master.host, master_name(master))});
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (!meets_others(c)) return;
  const Master* master = master_of(c);
  if (master == nullptr) {
    judge_each_itself(c, judge);
    return note_unsaid(c, judge);
  }
  if (only_the_jobs_shell_knows(master->host)) return;
  for (const NodeFacts& node : c.cluster.nodes) judge.see(node, "net.links", node.links);
  const auto views = views_of_master(c, judge);
  if (judge_wildcard(c, views, judge) || judge_broadcast(c, views, judge)) return;
  judge_unresolvable(c, views, judge);
  judge_split(c, views, judge);
  if (looks_alone(c)) return;
  if (master->endpoint) return;  // who hosts is decided otherwise: rendezvous/c10d_endpoint
  judge_loopback(c, views, judge);
  judge_other_node(c, views, judge);
  if (!judge_nobody(c, views, judge)) judge_outside(c, views, judge);
}

// --- the catalogue ---

constexpr std::string_view kAway[] = {"rendezvous-port-dropped", "rendezvous-port-rejected",
                                      "rendezvous-port-unreachable", "rendezvous-not-up",
                                      "rendezvous-wrong-service"};

constexpr std::string_view kAwayOrNoRoute[] = {"rendezvous-port-dropped",
                                               "rendezvous-port-rejected",
                                               "rendezvous-port-unreachable",
                                               "rendezvous-not-up",
                                               "rendezvous-wrong-service",
                                               "rendezvous-addr-outside",
                                               "net-no-route"};

constexpr Page kUnresolvablePage{
    .meaning =
        "A node cannot turn the master's name into an address, and waits for its time-out "
        "(`The IPv6 network addresses of (H, P) cannot be retrieved`).",
    .confirm = "`getent ahosts NAME` on that node prints nothing, or takes seconds.",
    .fix = "Use an address in place of the name, or add the name to DNS or to /etc/hosts there.",
    .verify = "`getent ahosts NAME` prints the same address on every node."};
constexpr Page kSplitPage{
    .meaning =
        "One name, two machines: a stale hosts file, two DNS views or a cloned entry sends "
        "some ranks elsewhere, where nobody of this job listens. Or the value is worked out by "
        "each "
        "task for itself: `export MASTER_ADDR=$(hostname)` in a script that srun starts on every "
        "node.",
    .confirm =
        "`getent ahosts NAME` on each node; `getent -s files ahosts NAME` shows the part of "
        "/etc/hosts.",
    .fix = "Mend the entry on the node named above, or set MASTER_ADDR to the address.",
    .verify = "`getent ahosts NAME` leads to one machine from everywhere."};
constexpr Page kLoopbackPage{
    .meaning =
        "MASTER_ADDR is a loopback address on a worker, so that it waits for a master on "
        "itself: `localhost` in a script, or a 127.0.1.1 line in /etc/hosts.",
    .confirm = "`getent ahosts NAME` on the worker prints 127.x or ::1.",
    .fix = "Set MASTER_ADDR to an address of rank 0's node that the others reach.",
    .verify = "`getent ahosts NAME` prints no loopback address on any worker."};
constexpr Page kOtherPage{
    .meaning =
        "Only rank 0 opens the store, on its own node. Whoever asks another node for it is "
        "refused until the time-out; rank 0 waits for ever.",
    .confirm = "`printenv RANK` of the process on each node, and `getent ahosts MASTER_ADDR`.",
    .fix = "Set MASTER_ADDR to the node of rank 0, or start rank 0 where MASTER_ADDR leads.",
    .verify = "`ss -ltn sport = :MASTER_PORT` shows a listener on the node of MASTER_ADDR."};
constexpr Page kNobodyPage{
    .meaning =
        "The address belongs to none of the peers, and no machine answers there: an old "
        "address, a typing error, or a node that is not in --peers and is down.",
    .confirm = "`ip -br addr` on the node of rank 0; `ping ADDRESS`, `ip neigh show ADDRESS`.",
    .fix = "Set MASTER_ADDR to an address of rank 0's node.",
    .verify =
        "`getent ahosts MASTER_ADDR` prints an address that `ip -br addr` shows on that node."};
constexpr Page kOutsidePage{
    .meaning =
        "MASTER_ADDR leads to a machine that is none of the peers. That is right where rank 0 runs "
        "on a node that --peers does not name, and where the address is translated on its way to "
        "a peer (a Kubernetes Service, a floating address). Else every rank waits for a store that "
        "nobody opens.",
    .confirm = "`getent ahosts MASTER_ADDR`, and `ip -br addr` on the node of rank 0.",
    .fix = "Name the node of rank 0 in --peers, or set MASTER_ADDR to an address of it.",
    .verify = "The next run with all nodes in --peers has no such line."};
constexpr Page kWildcardPage{
    .meaning =
        "0.0.0.0 and :: are for listening on all addresses. A client that connects to them "
        "reaches its own machine, so each node waits for a master on itself.",
    .confirm = "`printenv MASTER_ADDR` in the job's shell.",
    .fix =
        "Set MASTER_ADDR to an address of rank 0's node; it listens on all of its addresses "
        "anyway.",
    .verify = "`getent ahosts MASTER_ADDR` prints one of the node's own addresses."};

constexpr Page kBroadcastPage{
    .meaning =
        "A broadcast address (the last one of a subnet, 255.255.255.255) or a multicast one means "
        "many machines at once. TCP does not connect to it: `Permission denied`, `Network is "
        "unreachable`.",
    .confirm = "`ip route get MASTER_ADDR` prints `broadcast` or `multicast`.",
    .fix = "Set MASTER_ADDR to an address of rank 0's node (there: `ip -br addr`).",
    .verify = "`getent ahosts MASTER_ADDR` prints one of that node's own addresses."};

constexpr Code kCodes[] = {
    {.id = "rendezvous-addr-unresolvable",
     .fault_class = FaultClass::dns,
     .worst = Severity::blocker,
     .title = "MASTER_ADDR does not resolve",
     .causes = kAway,
     .page = kUnresolvablePage},
    {.id = "rendezvous-addr-split",
     .fault_class = FaultClass::master_addr_wrong,
     .worst = Severity::blocker,
     .title = "MASTER_ADDR means different machines",
     .causes = kAway,
     .page = kSplitPage},
    {.id = "rendezvous-addr-loopback",
     .fault_class = FaultClass::master_addr_wrong,
     .worst = Severity::blocker,
     .title = "MASTER_ADDR is loopback on a worker",
     .causes = kAway,
     .page = kLoopbackPage},
    {.id = "rendezvous-addr-other-node",
     .fault_class = FaultClass::master_addr_wrong,
     .worst = Severity::blocker,
     .title = "MASTER_ADDR is not rank 0's node",
     .causes = kAway,
     .page = kOtherPage},
    {.id = "rendezvous-addr-nobody",
     .fault_class = FaultClass::master_addr_wrong,
     .worst = Severity::blocker,
     .title = "MASTER_ADDR belongs to no peer",
     .causes = kAway,
     .page = kNobodyPage},
    {.id = "rendezvous-addr-outside",
     .fault_class = FaultClass::master_addr_wrong,
     .worst = Severity::notice,
     .title = "MASTER_ADDR leads to a machine that is no peer",
     .causes = {},
     .page = kOutsidePage},
    {.id = "rendezvous-addr-wildcard",
     .fault_class = FaultClass::master_addr_wrong,
     .worst = Severity::blocker,
     .title = "MASTER_ADDR is the wildcard address",
     .causes = kAway,
     .page = kWildcardPage},
    {.id = "rendezvous-addr-broadcast",
     .fault_class = FaultClass::master_addr_wrong,
     .worst = Severity::blocker,
     .title = "MASTER_ADDR is a broadcast or multicast address",
     .causes = kAwayOrNoRoute,
     .page = kBroadcastPage},
};

}  // namespace

extern const Check rendezvous_master_addr{
    .title = "MASTER_ADDR leads every node to rank 0", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
