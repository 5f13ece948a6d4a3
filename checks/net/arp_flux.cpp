// Two links of a node in one subnet: either may answer ARP for the other's address.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/routing.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

struct Twins {
  const NodeFacts* node;
  LinkAddress address;             // the job's, in the subnet of both
  std::vector<std::string> links;  // two at least
  std::vector<Purpose> purposes = {};
};

// ARP is answered for an address of another link (arp_ignore 0), and what then comes in by the
// wrong link is dropped (rp_filter 1). `ip-sysctl.rst`: the larger of "all" and the link's own.
bool breaks(const NodeFacts& node, const std::vector<std::string>& links) {
  const auto conf = [&](const std::string& name) {
    const auto found = node.kernel->conf.find(name);
    return found == node.kernel->conf.end() ? InterfaceConf{} : found->second;
  };
  return std::ranges::any_of(links, [&](const std::string& link) {
    const int ignore = std::max(conf("all").arp_ignore, conf(link).arp_ignore);
    const bool filter = conf("all").arp_filter != 0 || conf(link).arp_filter != 0;
    return strict_reverse_path(node, link) && ignore == 0 && !filter;
  });
}

void add(std::vector<Twins>& all, const NodeFacts& node, Purpose purpose, const Address& address) {
  const auto at = find_address(*node.links, address);
  if (!at || address.v6 || address.loopback()) return;
  auto links = links_in_subnet(node, *at->address);
  if (links.size() < 2 || !breaks(node, links)) return;
  const auto known = std::ranges::find(all, links, &Twins::links);
  if (known == all.end()) {
    all.push_back({&node, *at->address, std::move(links), {purpose}});
  } else {
    known->purposes.push_back(purpose);
  }
}

std::vector<Twins> twins_of(const Case& c, const NodeFacts& node) {
  std::vector<Twins> all;
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  if (prediction == nullptr || !node.links.known() || !node.kernel.known()) return all;
  for (const Announced& row : announced(c.cluster.job, *prediction)) {
    add(all, node, row.purpose, row.choice.address);
  }
  const auto& master = c.cluster.predicted.master;
  if (!master || master->node != node.host) return all;
  for (const Address& address : master->addresses) add(all, node, Purpose::master, address);
  return all;
}

// Dials to the subnet of these links that got no answer, as they do when ARP picked the wrong one.
bool fails(const Case& c, const Twins& twins) {
  return std::ranges::any_of(c.cluster.pairs, [&](const PairFacts& pair) {
    const bool here = pair.to == twins.node->host || pair.from == twins.node->host;
    return here && std::ranges::any_of(pair.dials, [&](const Dial& dial) {
             return dial.outcome == Outcome::timed_out &&
                    dial.address.shares_prefix(twins.address.address, twins.address.prefix);
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
       .observed = addresses_of(twins) + ", rp_filter 1 (strict), arp_ignore 0",
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

void report(const Case& c, const std::vector<Twins>& all, bool failing, Judge& judge) {
  std::vector<std::string> hosts;
  bool certain = false;
  for (const Twins& twins : all) {
    if (hosts.empty() || hosts.back() != twins.node->host) hosts.push_back(twins.node->host);
    certain = certain || std::ranges::any_of(twins.purposes, [&](Purpose purpose) {
                return use_of(c.cluster.job, purpose) == Use::yes;
              });
  }
  const Severity severity = failing ? Severity::blocker : Severity::degraded;
  Finding finding{.code = "net-arp-flux",
                  .severity = certain ? severity : std::min(severity, Severity::notice),
                  .certainty = failing ? Certainty::likely : Certainty::possible,
                  .symptom = Symptom::hang,
                  .summary = fmt::format(
                      "{}: {} are in one subnet, and strict rp_filter drops what ARP leads to the "
                      "wrong one{}",
                      fmt::join(hosts, ", "), fmt::join(all.front().links, " and "),
                      failing ? "" : "; it works until an ARP entry changes")};
  for (const Twins& twins : all) accuse(twins, finding);
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  std::vector<Twins> failing;
  std::vector<Twins> latent;
  for (const NodeFacts& node : c.cluster.nodes) {
    judge.see(node, "net.links", node.links);
    judge.see(node, "net.kernel", node.kernel);
    for (Twins& twins : twins_of(c, node)) {
      (fails(c, twins) ? failing : latent).push_back(std::move(twins));
    }
  }
  if (!failing.empty()) report(c, failing, true, judge);
  if (!latent.empty()) report(c, latent, false, judge);
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
