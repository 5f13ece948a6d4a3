// Every peer has a hostname of its own: NCCL tells nodes apart by it, Gloo announces it.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <utility>

namespace distdoctor::checks {
namespace {

using Nodes = std::vector<const NodeFacts*>;

std::vector<std::string> names_of(const Nodes& nodes) {
  std::vector<std::string> names;
  for (const NodeFacts* node : nodes) names.push_back(node->host);
  return names;
}

// Two names with the same network cards are one machine.
bool one_machine(const NodeFacts& a, const NodeFacts& b) {
  if (!a.links.known() || !b.links.known()) return false;
  std::set<std::string> cards;
  for (const Link& link : *a.links) {
    if (link.kind != LinkKind::loopback && !link.mac.empty()) cards.insert(link.mac);
  }
  return std::ranges::any_of(*b.links, [&](const Link& link) {
    return link.kind == LinkKind::ethernet && cards.contains(link.mac) && link.addresses == [&] {
      const Link* same = find_link(*a.links, link.name);
      return same == nullptr ? std::vector<LinkAddress>{} : same->addresses;
    }();
  });
}

bool all_one_machine(const Nodes& nodes) {
  return std::ranges::all_of(
      nodes, [&](const NodeFacts* node) { return one_machine(*nodes.front(), *node); });
}

// An empty one is one that nobody could read.
bool same_boot(const Nodes& nodes) {
  const std::string& first = nodes.front()->identity->boot_id;
  return !first.empty() && std::ranges::all_of(nodes, [&](const NodeFacts* node) {
    return node->identity->boot_id == first;
  });
}

std::string wall(const NodeFacts& node, const std::string& name) {
  if (!node.world.known()) return "";
  const auto found = node.world->namespaces.find(name);
  return found == node.world->namespaces.end() ? "" : found->second;
}

// Containers on one kernel: NCCL is right to take them for one host. A copied machine has its
// original's boot_id too, but its namespaces as well.
bool one_kernel(const Nodes& nodes) {
  const NodeFacts& first = *nodes.front();
  return std::ranges::all_of(nodes, [&](const NodeFacts* node) {
    const std::string mounts = wall(*node, "mnt");
    return node->identity.known() && first.identity.known() && !first.identity->boot_id.empty() &&
           node->identity->boot_id == first.identity->boot_id &&
           !node->identity->container.empty() && !mounts.empty() &&
           (node == &first || mounts != wall(first, "mnt"));
  });
}

// They were given one hostname for that.
bool joined_on_purpose(const Nodes& nodes) {
  const std::string first = wall(*nodes.front(), "uts");
  return one_kernel(nodes) && !first.empty() &&
         std::ranges::all_of(nodes, [&](const auto* node) { return wall(*node, "uts") == first; });
}

void note_unknown_boot(const Nodes& nodes, Judge& judge) {
  static const Observed<std::string> unread = Unknown{.text = "boot_id could not be read"};
  for (const NodeFacts* node : nodes) {
    if (node->identity->boot_id.empty()) judge.see(*node, "identity.boot_id", unread);
  }
}

// Gloo and torchrun's c10d find a machine by its hostname; who uses neither does not care.
bool hostname_matters(const Case& c) {
  const bool endpoint = c.cluster.predicted.master && c.cluster.predicted.master->endpoint;
  return c.cluster.job.gloo == Use::yes || endpoint;
}

Severity severity_of(const Case& c, bool one_host) {
  if (one_host) return Severity::blocker;
  return hostname_matters(c) ? Severity::degraded : Severity::notice;
}

void judge_hostname(const Case& c, const std::string& hostname, const Nodes& nodes, Judge& judge) {
  const bool machine = all_one_machine(nodes);
  // NCCL hashes hostname and boot_id (nccl utils.cc getHostHash).
  const bool one_to_nccl = same_boot(nodes) && !one_kernel(nodes) && c.cluster.job.nccl == Use::yes;
  if (!machine) note_unknown_boot(nodes, judge);
  Finding finding{
      .code = "env-same-hostname",
      .severity = severity_of(c, one_to_nccl || machine),
      .certainty = Certainty::likely,
      .symptom = Symptom::hang,
      .subjects = {.nodes = names_of(nodes)},
      .summary = fmt::format("{} {} the hostname {}", fmt::join(names_of(nodes), " and "),
                             machine ? "are one machine, with" : "have", hostname)};
  if (one_to_nccl && !machine) {
    finding.summary += " and boot_id: NCCL takes them for one host";
  }
  for (const NodeFacts* node : nodes) {
    finding.evidence.push_back(
        {.node = node->host,
         .fact = "hostname, boot_id",
         .observed = fmt::format("{}, {}", hostname, node->identity->boot_id),
         .expected = "a hostname of its own",
         .command = "hostname; cat /proc/sys/kernel/random/boot_id"});
    if (machine) continue;
    finding.fix.push_back(
        {.node = node->host,
         .kind = Fix::Kind::shell,
         .command = "hostname " + shell_quote(node->host),
         .text = "as root, with no job on the node: slurmd and others know it by the old "
                 "name until they are restarted. For good: hostnamectl "
                 "set-hostname"});
  }
  if (machine) {
    finding.fix = {
        {.node = "*",
         .kind = Fix::Kind::manual,
         .text = "name each machine once in --peers, or mend what both names resolve to"}};
  }
  judge.report(std::move(finding));
}

const Setting* host_id(const Case& c, const NodeFacts& node) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  const Setting* setting =
      prediction == nullptr ? nullptr : find_setting(*prediction, "NCCL_HOSTID");
  const bool in_force = setting != nullptr && !setting->value.empty() &&
                        setting->origin.source != Source::environment;
  return in_force ? setting : nullptr;
}

// NCCL_HOSTID replaces hostname and boot_id: one value for all nodes makes them one host.
void judge_host_id(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  std::map<std::string, Nodes> by_id;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (const Setting* id = host_id(c, node)) by_id[id->value].push_back(&node);
  }
  for (const auto& [id, nodes] : by_id) {
    if (nodes.size() < 2 || one_kernel(nodes)) continue;
    Finding finding{
        .code = "env-same-hostname",
        .severity = c.cluster.job.nccl == Use::yes ? Severity::blocker : Severity::notice,
        .certainty = Certainty::likely,
        .symptom = Symptom::crash,
        .subjects = {.nodes = names_of(nodes)},
        .summary = fmt::format("NCCL_HOSTID={} on {} nodes: NCCL takes them for one host", id,
                               nodes.size())};
    for (const NodeFacts* node : nodes) {
      finding.evidence.push_back({.node = node->host,
                                  .fact = "NCCL_HOSTID",
                                  .observed = id,
                                  .expected = "unset, or another on each node",
                                  .context = std::string(slug(node->context)),
                                  .command = "printenv NCCL_HOSTID; grep NCCL_HOSTID ~/.nccl.conf "
                                             "/etc/nccl.conf"});
    }
    finding.fix = {{.node = "*",
                    .kind = Fix::Kind::env,
                    .env = {{"NCCL_HOSTID", std::nullopt}},
                    .text = "unset it, in nccl.conf too"}};
    judge.report(std::move(finding));
  }
}

void run(const Case& c, Judge& judge) {
  std::map<std::string, Nodes> by_name;
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* identity = judge.see(node, "identity", node.identity);
    const bool replaced = host_id(c, node) != nullptr;
    if (identity != nullptr && !identity->hostname.empty() && !replaced) {
      by_name[identity->hostname].push_back(&node);
    }
  }
  for (const auto& [hostname, nodes] : by_name) {
    if (nodes.size() > 1 && !joined_on_purpose(nodes)) judge_hostname(c, hostname, nodes, judge);
  }
  judge_host_id(c, judge);
}

constexpr Page kPage{
    .meaning =
        "Two nodes have one hostname, as machines made from one image may. torchrun and "
        "Gloo find the wrong machine under it; when boot_id is the same too, or NCCL_HOSTID "
        "is, NCCL takes both for one host and fails in shared memory or peer-to-peer.",
    .confirm = "`hostname; cat /proc/sys/kernel/random/boot_id` on both.",
    .fix =
        "`hostnamectl set-hostname NAME`, another name on each; unset NCCL_HOSTID. Containers: "
        "`--hostname NAME`.",
    .verify = "`hostname` prints another name on each node."};
constexpr std::string_view kCauses[] = {"rendezvous-endpoint-claimed-twice",
                                        "net-hostname-loopback"};
constexpr Code kCodes[] = {{.id = "env-same-hostname",
                            .fault_class = FaultClass::same_hostname,
                            .worst = Severity::blocker,
                            .title = "Two nodes have one hostname",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check env_same_hostname{.title = "Every node has a hostname of its own",
                                     .codes = kCodes,
                                     .run = run,
                                     .needs = Needs::pairs};

}  // namespace distdoctor::checks
