// The interfaces that NCCL chooses must be there, and carry addresses that the other nodes reach.
#include <distdoctor/check.h>

#include "chosen.h"

namespace distdoctor::checks {
namespace {

constexpr const char* kVariable = "NCCL_SOCKET_IFNAME";
constexpr const char* kCommId = "NCCL_COMM_ID";

// It goes before NCCL_SOCKET_IFNAME, and with it NCCL's start has failed.
bool fails_by_comm_id(const Prediction& prediction, const NcclChoice& choice) {
  return find_setting(prediction, kCommId) != nullptr && !choice.bootstrap &&
         choice.bootstrap_error != "no socket interface found";
}

// --- what is wrong with a choice ---

enum class Flaw : std::uint8_t { none, no_match, loopback, unreachable };

struct Opinion {
  Flaw flaw = Flaw::none;
  Choice choice = {};
  std::string text = {};     // what was observed
  std::string command = {};  // to see it
  const NodeFacts* seen_by = nullptr;
  bool sure = true;  // by all rules that this NCCL may follow
};

struct Scene {
  const Case& c;
  bool sockets_carry_data;
  bool alternative;
};

Opinion no_match(const NodeFacts& node, const Prediction& prediction, const std::string& error) {
  return {.flaw = Flaw::no_match,
          .text = fmt::format("{}: {}", said(prediction, kVariable), error),
          .command = "ip -br addr",
          .seen_by = &node};
}

Opinion refused_comm_id(const NodeFacts& node,
                        const Prediction& prediction,
                        const std::string& error) {
  return {.flaw = Flaw::no_match,
          .text = fmt::format("{}: {}", said(prediction, kCommId), error),
          .command = see_setting(prediction, kCommId),
          .seen_by = &node};
}

Opinion of_choice(const Scene& scene, const NodeFacts& node, const Choice& choice) {
  if (choice.address.loopback()) {
    return {.flaw = Flaw::loopback,
            .choice = choice,
            .text = choice_text(choice),
            .command = "ip -br addr",
            .seen_by = &node};
  }
  const auto row = worthless(scene.c.cluster, node, choice, scene.alternative);
  if (!row) return {};
  return {.flaw = Flaw::unreachable,
          .choice = choice,
          .text = fmt::format("{} announces {}: {}", node.host, choice_text(choice), row->why),
          .command = dial_command(choice, *row),
          .seen_by = row->witness};
}

Opinion of_rules(const Scene& scene,
                 const NodeFacts& node,
                 const Prediction& prediction,
                 const NcclChoice& choice) {
  if (fails_by_comm_id(prediction, choice)) {
    return refused_comm_id(node, prediction, choice.bootstrap_error);
  }
  if (!choice.bootstrap) return no_match(node, prediction, choice.bootstrap_error);
  Opinion opinion = of_choice(scene, node, *choice.bootstrap);
  if (opinion.flaw != Flaw::none || !scene.sockets_carry_data) return opinion;
  if (choice.net_socket.empty()) return no_match(node, prediction, choice.net_socket_error);
  for (const Choice& data : choice.net_socket) {
    opinion = of_choice(scene, node, data);
    if (opinion.flaw != Flaw::none) break;
  }
  return opinion;
}

// Today's rules speak; where the version is not known the older ones must agree that it is bad.
Opinion opinion_of(const Scene& scene, const NodeFacts& node, const Prediction& prediction) {
  Opinion opinion = of_rules(scene, node, prediction, *prediction.nccl);
  for (const NcclChoice& other : prediction.nccl_others) {
    const Opinion second = of_rules(scene, node, prediction, other);
    if ((second.flaw == Flaw::none) == (opinion.flaw == Flaw::none)) continue;
    if (opinion.flaw == Flaw::none) opinion = second;
    opinion.sure = false;
  }
  return opinion;
}

// --- findings ---

struct Accused {
  const NodeFacts* node;
  const Prediction* prediction;
  Opinion opinion;
};

// The link that has this as an alternative name (`ip link property`), which getifaddrs(3) and so
// NCCL do not know.
const Link* link_also_called(const NodeFacts& node, std::string_view name) {
  if (!node.links.known()) return nullptr;
  const auto found = std::ranges::find_if(*node.links, [&](const Link& link) {
    return std::ranges::find(link.altnames, name) != link.altnames.end();
  });
  return found == node.links->end() ? nullptr : &*found;
}

// What in a value keeps it from matching (NCCL trims nothing, knows no globs and no addresses).
std::string hint(const Accused& row) {
  const Setting* setting = find_setting(*row.prediction, kVariable);
  if (setting == nullptr) return "";
  const std::string& value = setting->value;
  if (const Link* link =
          link_also_called(*row.node, value.substr(value.starts_with('=') ? 1 : 0))) {
    return fmt::format(", which is an alternative name of {} that NCCL does not know,", link->name);
  }
  if (value.find('\r') != std::string::npos) return ", which ends in a carriage return";
  if (value.find_first_of(" \t") != std::string::npos) return ", in which blanks count";
  if (value.find_first_of("\"'") != std::string::npos) return ", in which quotes count";
  if (value.find_first_of("*?;") != std::string::npos)
    return ", which knows commas and no patterns";
  const auto mark = value.find_last_of("^=");
  if (mark != std::string::npos && (mark > 1 || value.starts_with("=^"))) {
    return ", in which ^ and = count at the beginning only";
  }
  if (Address::parse(value)) return ", which takes names and no addresses";
  return "";
}

std::string hosts_of(const std::vector<Accused>& all) {
  std::vector<std::string> hosts;
  for (const Accused& row : all) hosts.push_back(row.node->host);
  return fmt::format("{}", fmt::join(hosts, ", "));
}

// IPv6 or IPv4 was asked for, and no link of the node has it.
const Setting* family_nobody_has(const Accused& row) {
  const Setting* family = find_setting(*row.prediction, "NCCL_SOCKET_FAMILY");
  const bool known =
      family != nullptr && (family->value == "AF_INET" || family->value == "AF_INET6");
  if (!known || !row.node->links.known()) return nullptr;
  const bool v6 = family->value == "AF_INET6";
  for (const Link& link : *row.node->links) {
    for (const LinkAddress& own : link.addresses) {
      if (own.address.v6 == v6 && !own.address.loopback()) return nullptr;
    }
  }
  return family;
}

std::string cause_of(const Accused& row) {
  if (const Setting* family = family_nobody_has(row)) {
    return "with NCCL_SOCKET_FAMILY=" + setting_text(*family);
  }
  const Setting* setting = find_setting(*row.prediction, kVariable);
  return setting == nullptr ? "without NCCL_SOCKET_IFNAME"
                            : "with " + said(*row.prediction, kVariable);
}

std::string summary_of(Flaw flaw, const std::vector<Accused>& all) {
  const Accused& first = all.front();
  const std::string hosts = hosts_of(all);
  if (flaw == Flaw::no_match && fails_by_comm_id(*first.prediction, *first.prediction->nccl)) {
    return fmt::format("NCCL cannot start on {} with {}: {}", hosts,
                       said(*first.prediction, kCommId), first.prediction->nccl->bootstrap_error);
  }
  switch (flaw) {
    case Flaw::no_match:
      return fmt::format("{}{} NCCL finds no interface on {}", cause_of(first), hint(first), hosts);
    case Flaw::loopback:
      return fmt::format("{} NCCL takes loopback on {}: ranks on other nodes cannot connect to it",
                         cause_of(first), hosts);
    default:
      return fmt::format("{} NCCL takes {} on {}, which other nodes do not reach", cause_of(first),
                         first.opinion.choice.interface, hosts);
  }
}

// The value without quotes and blanks, where that is the name of a link on every node.
std::optional<std::string> unquoted(const ClusterFacts& cluster, const Accused& row) {
  constexpr std::string_view kStrange = "\"' \t\r\n";
  const Setting* setting = find_setting(*row.prediction, kVariable);
  if (setting == nullptr) return std::nullopt;
  std::string value;
  for (const char c : setting->value) {
    if (!kStrange.contains(c)) value += c;
  }
  if (value == setting->value) return std::nullopt;
  const std::string_view name = std::string_view(value).substr(value.starts_with('=') ? 1 : 0);
  const bool everywhere = std::ranges::all_of(cluster.nodes, [&](const NodeFacts& node) {
    return node.links.known() && find_link(*node.links, name) != nullptr;
  });
  return everywhere ? std::optional(value) : std::nullopt;
}

std::vector<Fix> fixes_for(const Case& c, Flaw flaw, const Accused& first) {
  const bool by_comm_id = fails_by_comm_id(*first.prediction, *first.prediction->nccl);
  if (flaw == Flaw::no_match && by_comm_id) {
    return {{.node = "*",
             .kind = Fix::Kind::env,
             .env = {{kCommId, std::nullopt}},
             .text = "torch hands the id over itself; NCCL_COMM_ID fits one machine only"}};
  }
  if (flaw == Flaw::no_match && family_nobody_has(first) != nullptr) {
    return {{.node = "*",
             .kind = Fix::Kind::env,
             .env = {{"NCCL_SOCKET_FAMILY", std::nullopt}},
             .text = "no link has an address of that family; without it NCCL takes what is there"}};
  }
  if (const auto meant = unquoted(c.cluster, first); meant && flaw == Flaw::no_match) {
    return {
        {.node = "*",
         .kind = Fix::Kind::env,
         .env = {{std::string(kVariable), *meant}},
         .text = "the same without quotes and blanks, which NCCL takes for a part of the name"}};
  }
  return set_variable(
      c, kVariable,
      "set NCCL_SOCKET_IFNAME to \"=NAME\" of an interface that all nodes reach each "
      "other by (`ip -br addr`)");
}

void report(const Case& c, Flaw flaw, bool sure, const std::vector<Accused>& all, Judge& judge) {
  constexpr std::string_view kIds[] = {"", "net-nccl-ifname-no-match", "net-nccl-ifname-loopback",
                                       "net-nccl-interface-unreachable"};
  const Severity worst = sure ? Severity::blocker : Severity::notice;
  Finding finding{.code = std::string(kIds[static_cast<std::size_t>(flaw)]),
                  .severity = capped_by_use(worst, c.cluster.job.nccl),
                  .certainty = sure ? Certainty::proved : Certainty::possible,
                  .symptom = flaw == Flaw::no_match ? Symptom::crash : Symptom::hang,
                  .summary = summary_of(flaw, all)};
  if (sure) finding.summary += hangs_on_use(c.cluster.job.nccl, "NCCL", "nccl");
  if (!sure) finding.summary += "; true of some NCCL versions, and this job's is not known";
  const Accused& first = all.front();
  const bool by_comm_id =
      flaw == Flaw::no_match && fails_by_comm_id(*first.prediction, *first.prediction->nccl);
  for (const Accused& row : all) {
    finding.subjects.nodes.push_back(row.node->host);
    finding.evidence.push_back({.node = row.opinion.seen_by->host,
                                .fact = "nccl.interface",
                                .observed = row.opinion.text,
                                .expected = by_comm_id ? "unset, or HOST:PORT of rank 0's node"
                                                       : "an interface that the other nodes reach",
                                .command = row.opinion.command});
  }
  if (!by_comm_id && find_setting(*first.prediction, kVariable) != nullptr) {
    finding.evidence.push_back({.node = first.node->host,
                                .fact = kVariable,
                                .observed = said(*first.prediction, kVariable),
                                .expected = "a value that fits every node",
                                .command = see_setting(*first.prediction, kVariable)});
  }
  finding.fix = fixes_for(c, flaw, first);
  judge.report(std::move(finding));
}

// --- one too many by prefix ---

// The names of a list by which whole families of interfaces are taken: "eth1" takes eth10, too.
std::vector<std::string> prefixes_in(const Setting* setting) {
  std::vector<std::string> names;
  if (setting == nullptr || setting->value.starts_with('^') || setting->value.starts_with('=')) {
    return names;
  }
  std::string_view rest = setting->value;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    names.emplace_back(rest.substr(0, std::min(comma, rest.find(':'))));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

bool taken(const NcclChoice& choice, const std::string& name) {
  return std::ranges::find(choice.net_socket, name, &Choice::interface) != choice.net_socket.end();
}

// Taken by the prefix of an interface that is there itself.
bool by_prefix(const NcclChoice& choice,
               const std::vector<std::string>& names,
               const std::string& interface) {
  if (std::ranges::find(names, interface) != names.end()) return false;
  return std::ranges::any_of(names, [&](const std::string& name) {
    return !name.empty() && interface.starts_with(name) && taken(choice, name);
  });
}

// Every other node reached it, or lies in its subnet.
bool serves_all(const ClusterFacts& cluster, const NodeFacts& node, const Choice& choice) {
  const auto at = where_is(node, choice.address);
  return at && std::ranges::all_of(cluster.nodes, [&](const NodeFacts& other) {
           return other.host == node.host || beside(other, *at->address) ||
                  std::ranges::any_of(dials_between(cluster, other.host, node.host, choice.address),
                                      gets_there);
         });
}

void judge_prefix(const Scene& scene, Judge& judge) {
  Finding finding{.code = "net-nccl-ifname-prefix",
                  .severity = capped_by_use(Severity::degraded, scene.c.cluster.job.nccl),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::hang,
                  .summary = ""};
  for (const NodeFacts& node : scene.c.cluster.nodes) {
    const Prediction* prediction = find_prediction(scene.c.cluster, node.host);
    if (prediction == nullptr || !prediction->nccl.known() || !node.links.known()) continue;
    const auto names = prefixes_in(find_setting(*prediction, kVariable));
    for (const Choice& choice : prediction->nccl->net_socket) {
      if (!by_prefix(*prediction->nccl, names, choice.interface)) continue;
      if (serves_all(scene.c.cluster, node, choice)) continue;
      if (finding.evidence.empty()) {
        finding.summary = fmt::format("{} takes {} as well, in a subnet that not every node is in",
                                      said(*prediction, kVariable), choice.interface);
      }
      if (finding.subjects.nodes.empty() || finding.subjects.nodes.back() != node.host) {
        finding.subjects.nodes.push_back(node.host);
      }
      finding.evidence.push_back(
          {.node = node.host,
           .fact = "nccl.data",
           .observed = choice_text(choice) + ", taken by its prefix",
           .expected = "only interfaces that the other nodes reach",
           .command = "ip -br addr show dev " + shell_quote(choice.interface)});
    }
  }
  if (finding.evidence.empty()) return;
  finding.fix = set_variable(scene.c, kVariable,
                             "begin NCCL_SOCKET_IFNAME with \"=\": then names are compared whole");
  judge.report(std::move(finding));
}

// --- the check ---

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  // Ranks of one node meet by any interface, but not without one.
  const bool alone = c.cluster.nodes.size() < 2;
  const Scene scene{.c = c,
                    .sockets_carry_data = !rdma_carries_data(c),
                    .alternative = !recommended(c, kVariable).empty()};
  std::map<std::pair<Flaw, bool>, std::vector<Accused>> found;
  for (const NodeFacts& node : c.cluster.nodes) {
    const Prediction* prediction = find_prediction(c.cluster, node.host);
    if (prediction == nullptr) continue;
    if (judge.see(node, "nccl.interface", prediction->nccl) == nullptr) continue;
    const Opinion opinion = opinion_of(scene, node, *prediction);
    if (opinion.flaw == Flaw::none || (alone && opinion.flaw != Flaw::no_match)) continue;
    found[{opinion.flaw, opinion.sure}].push_back({&node, prediction, opinion});
  }
  for (const auto& [key, accused] : found) report(c, key.first, key.second, accused, judge);
  if (found.empty() && !alone && scene.sockets_carry_data) judge_prefix(scene, judge);
}

// --- the catalogue ---

constexpr std::string_view kCauses[] = {"net-ephemeral-dropped", "net-ephemeral-rejected",
                                        "net-peer-unreachable", "net-no-route"};
constexpr Page kNoMatchPage{
    .meaning =
        "NCCL compares NCCL_SOCKET_IFNAME with the names of this node's running interfaces and "
        "finds "
        "none: `Bootstrap : no socket interface found`. Names begin with the given text, or equal "
        "it "
        "after a leading `=`; `^` excludes; nothing is trimmed, and there are no patterns.",
    .confirm = "`printenv NCCL_SOCKET_IFNAME`, `cat /etc/nccl.conf ~/.nccl.conf`, `ip -br addr`.",
    .fix =
        "Name an interface that is there and up on every node; `=eth1,ens5` may list them all. "
        "`distdoctor env` prints a value that was checked.",
    .verify = "NCCL_DEBUG=INFO prints `Bootstrap: Using NAME:ADDRESS`."};
constexpr Page kLoopbackPage{
    .meaning =
        "NCCL announces 127.0.0.1 to the other ranks, which then connect to themselves. Most "
        "often an exclude list that forgets lo: `^docker0` takes lo, the first interface that "
        "is left.",
    .confirm = "NCCL_DEBUG=INFO prints `Bootstrap: Using lo:127.0.0.1`.",
    .fix = "Write `^docker,lo`, or better name what is wanted: `=eth1`.",
    .verify = "NCCL_DEBUG=INFO prints the address of a network that all nodes share."};
constexpr Page kPrefixPage{
    .meaning =
        "Names in NCCL_SOCKET_IFNAME are prefixes: `eth1` takes eth10 to eth19 too, and NCCL "
        "spreads its data over all of them.",
    .confirm = "NCCL_DEBUG=INFO prints `NET/Socket : Using [0]eth1:... [1]eth10:...`.",
    .fix = "Begin the list with `=`: `NCCL_SOCKET_IFNAME='=eth1'`.",
    .verify = "The same line lists only what was meant."};
constexpr Page kUnreachablePage{
    .meaning =
        "NCCL announces an address that is of use inside one node only: a docker or libvirt "
        "bridge, a VPN, a link-local address, a subnet without a route. Its peers connect to "
        "nobody, or to themselves, and hang.",
    .confirm =
        "NCCL_DEBUG=INFO prints `Bootstrap: Using NAME:ADDRESS`; try `nc -vz ADDRESS PORT` from "
        "another node.",
    .fix =
        "Set NCCL_SOCKET_IFNAME to the interface by which all nodes reach each other. `distdoctor "
        "env` prints a value that was checked.",
    .verify = "`distdoctor check --peers ...` reaches every announced address."};
constexpr Code kCodes[] = {
    {.id = "net-nccl-ifname-no-match",
     .fault_class = FaultClass::iface_not_exist,
     .worst = Severity::blocker,
     .title = "NCCL finds no interface",
     .causes = {},
     .page = kNoMatchPage},
    {.id = "net-nccl-ifname-loopback",
     .fault_class = FaultClass::iface_wrong,
     .worst = Severity::blocker,
     .title = "NCCL takes loopback",
     .causes = {},
     .page = kLoopbackPage},
    {.id = "net-nccl-ifname-prefix",
     .fault_class = FaultClass::iface_wrong,
     .worst = Severity::degraded,
     .title = "NCCL takes more interfaces than were named",
     .causes = {},
     .page = kPrefixPage},
    {.id = "net-nccl-interface-unreachable",
     .fault_class = FaultClass::iface_wrong,
     .worst = Severity::blocker,
     .title = "NCCL announces addresses that others do not reach",
     .causes = kCauses,
     .page = kUnreachablePage},
};

}  // namespace

extern const Check net_nccl_interface{
    .title = "NCCL takes interfaces that all nodes reach", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
