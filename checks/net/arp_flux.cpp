// Two links of a node in one subnet: either may answer ARP for the other's address.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/routing.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

struct Twins {
  const NodeFacts* node;
  LinkAddress address;             // the job's, in the subnet of both
  std::vector<std::string> links;  // two at least
  bool flux = false;               // a peer may learn the wrong link for an address
  std::string detour = {};  // "answers from 10.0.0.111 leave by eth0", under strict rp_filter
  std::vector<Purpose> purposes = {};
};

// ARP is answered for an address of another link (arp_ignore 0), and what then comes in by the
// wrong link is dropped (rp_filter 1). `ip-sysctl.rst`: the larger of "all" and the link's own.
bool answers_for_others(const NodeFacts& node, const std::vector<std::string>& links) {
  const auto conf = [&](const std::string& name) {
    const auto found = node.kernel->conf.find(name);
    return found == node.kernel->conf.end() ? InterfaceConf{} : found->second;
  };
  return std::ranges::any_of(links, [&](const std::string& link) {
    const bool ignores = conf("all").arp_ignore != 0 || conf(link).arp_ignore != 0;
    const bool filters = conf("all").arp_filter != 0 || conf(link).arp_filter != 0;
    return strict_reverse_path(node, link) && !ignores && !filters;
  });
}

// Of two routes to one subnet the first counts: answers from the other link's address leave by it,
// so that strict rp_filter drops what comes in by that link, if ARP leads there or not.
std::string detour_of(const Case& c, const NodeFacts& node, const AddressOnLink& at) {
  if (!strict_reverse_path(node, at.link->name)) return "";
  for (const NodeFacts& other : c.cluster.nodes) {
    if (other.host == node.host || !other.links.known()) continue;
    for (const Link& link : *other.links) {
      for (const LinkAddress& row : link.addresses) {
        if (!row.address.shares_prefix(at.address->address, at.address->prefix)) continue;
        const auto way = way_out(node, row.address, at.address->address);
        const bool detour = way && way->route != nullptr &&
                            way->route->kind == RouteKind::unicast &&
                            way->route->interface != at.link->name;
        if (!detour) continue;
        return fmt::format("answers from {} leave by {}", at.address->address.text(),
                           way->route->interface);
      }
    }
  }
  return "";
}

void add(const Case& c, const NodeFacts& node, const Announced& row, std::vector<Twins>& all) {
  const Address& address = row.choice.address;
  const auto at = find_address(*node.links, address);
  if (!at || address.v6 || address.loopback()) return;
  auto links = links_in_subnet(node, *at->address);
  if (links.size() < 2) return;
  auto known = std::ranges::find(all, links, &Twins::links);
  if (known == all.end()) {
    const bool flux = answers_for_others(node, links);
    all.push_back(
        {.node = &node, .address = *at->address, .links = std::move(links), .flux = flux});
    known = all.end() - 1;
  }
  if (known->detour.empty()) known->detour = detour_of(c, node, *at);
  known->purposes.push_back(row.purpose);
}

std::vector<Twins> twins_of(const Case& c, const NodeFacts& node) {
  std::vector<Twins> all;
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  if (prediction == nullptr || !node.links.known() || !node.kernel.known()) return all;
  for (const Announced& row : announced(c.cluster.job, *prediction)) add(c, node, row, all);
  const auto& master = c.cluster.predicted.master;
  if (master && master->node == node.host) {
    for (const Address& address : master->addresses) {
      add(c, node, {Purpose::master, {.address = address}}, all);
    }
  }
  std::erase_if(all, [](const Twins& twins) { return !twins.flux && twins.detour.empty(); });
  return all;
}

// Dials to the subnet of these links that got no answer, as they do when ARP picked the wrong one
// or is not answered itself: strict rp_filter drops ARP requests, too (arp_process).
bool fails(const Case& c, const Twins& twins) {
  return std::ranges::any_of(c.cluster.pairs, [&](const PairFacts& pair) {
    const bool here = pair.to == twins.node->host || pair.from == twins.node->host;
    return here && std::ranges::any_of(pair.dials, [&](const Dial& dial) {
             const bool silent =
                 dial.outcome == Outcome::timed_out || dial.outcome == Outcome::host_unreachable;
             return silent &&
                    dial.address.shares_prefix(twins.address.address, twins.address.prefix);
           });
  });
}

// A peer got answers from two network cards for one of these addresses.
bool seen_twice(const Case& c, const Twins& twins) {
  return std::ranges::any_of(c.cluster.nodes, [&](const NodeFacts& asker) {
    return asker.duplicates.known() &&
           std::ranges::any_of(*asker.duplicates, [&](const DuplicateAddress& row) {
             const auto at = find_address(*twins.node->links, row.address);
             return at && std::ranges::find(twins.links, at->link->name) != twins.links.end();
           });
  });
}

std::string addresses_of(const Twins& twins) {
  std::vector<std::string> words;
  for (const std::string& name : twins.links) {
    const Link* link = find_link(*twins.node->links, name);
    for (const LinkAddress& row : link->addresses) {
      if (row.address.shares_prefix(twins.address.address, twins.address.prefix)) {
        words.push_back(fmt::format("{} {}/{}", name, row.address.text(), row.prefix));
      }
    }
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

void accuse(const Twins& twins, Finding& finding) {
  const std::string& host = twins.node->host;
  finding.subjects.nodes.push_back(host);
  finding.evidence.push_back(
      {.node = host,
       .fact = "net.subnet",
       .observed = fmt::format("{}, rp_filter 1 (strict){}{}{}", addresses_of(twins),
                               twins.flux ? ", arp_ignore 0" : "", twins.detour.empty() ? "" : ", ",
                               twins.detour),
       .expected = "one link a subnet, or settings that keep them apart",
       .command = "ip -br -4 addr; sysctl -a -r 'conf.*(rp_filter|arp_ignore)'"});
  std::string command = "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2";
  for (const std::string& link : twins.links) {
    command += " " + shell_quote(fmt::format("net.ipv4.conf.{}.rp_filter=2", link));
  }
  finding.fix.push_back({.node = host,
                         .kind = Fix::Kind::shell,
                         .command = std::move(command),
                         .text = "as root; or give each link a subnet of its own"});
}

// How far it has come.
enum class Stage : std::uint8_t { latent, seen, failing };

Stage stage_of(const Case& c, const Twins& twins) {
  if (fails(c, twins)) return Stage::failing;
  return seen_twice(c, twins) ? Stage::seen : Stage::latent;
}

std::string how(const Twins& twins, Stage stage) {
  if (!twins.detour.empty()) return "strict rp_filter drops what comes in: " + twins.detour;
  const std::string text = "strict rp_filter drops what ARP leads to the wrong one";
  return stage == Stage::failing ? text : text + "; it works until an ARP entry changes";
}

void report(const Case& c, const std::vector<Twins>& all, Stage stage, Judge& judge) {
  constexpr Severity kSeverities[] = {Severity::notice, Severity::degraded, Severity::blocker};
  const Severity severity = kSeverities[static_cast<std::size_t>(stage)];
  std::vector<std::string> hosts;
  std::vector<Purpose> purposes;
  for (const Twins& twins : all) {
    if (hosts.empty() || hosts.back() != twins.node->host) hosts.push_back(twins.node->host);
    purposes.insert(purposes.end(), twins.purposes.begin(), twins.purposes.end());
  }
  Finding finding{
      .code = "net-arp-flux",
      .severity = capped_by_purposes(c.cluster.job, severity, purposes),
      .certainty = stage == Stage::failing ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::hang,
      .summary = fmt::format("{}: {} are in one subnet, and {}", fmt::join(hosts, ", "),
                             fmt::join(all.front().links, " and "), how(all.front(), stage))};
  for (const Twins& twins : all) accuse(twins, finding);
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  std::map<Stage, std::vector<Twins>, std::greater<>> found;
  for (const NodeFacts& node : c.cluster.nodes) {
    judge.see(node, "net.links", node.links);
    judge.see(node, "net.kernel", node.kernel);
    for (Twins& twins : twins_of(c, node)) {
      found[stage_of(c, twins)].push_back(std::move(twins));
    }
  }
  for (const auto& [stage, all] : found) report(c, all, stage, judge);
}

constexpr std::string_view kCauses[] = {
    "net-reverse-path",      "net-peer-unreachable",        "net-one-way-dropped",
    "net-ephemeral-dropped", "rendezvous-port-unreachable", "rendezvous-port-dropped"};
constexpr Page kPage{
    .meaning =
        "Linux answers ARP for any of its addresses on any link. With two links in one subnet the "
        "peers learn the one or the other by chance; answers leave by the first route. Strict "
        "rp_filter then drops what comes in by the other link: connections work or hang as the ARP "
        "caches will have it.",
    .confirm = "`arping -c 3 -I LINK ADDRESS` from a peer shows two MAC addresses.",
    .fix =
        "A subnet for each link; or arp_ignore=1, arp_announce=2 and rp_filter=2, best with a "
        "routing table for each link (`ip rule add from ADDRESS lookup N`).",
    .verify =
        "`arping` shows one MAC address; `nstat -az TcpExtIPReversePathFilter` stands still."};
constexpr Code kCodes[] = {{.id = "net-arp-flux",
                            .fault_class = FaultClass::iface_same_subnet,
                            .worst = Severity::blocker,
                            .title = "Two links in one subnet get in each other's way",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_arp_flux{
    .title = "Each link of a node has its own subnet", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
