// The kernel's tables of connections and of neighbours must have room.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/reading.h>
#include <distdoctor/views.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

template <class Bad>
bool some_dial(const Case& c, const NodeFacts& node, Bad bad) {
  return std::ranges::any_of(c.cluster.pairs, [&](const PairFacts& pair) {
    return (pair.from == node.host || pair.to == node.host) &&
           std::ranges::any_of(pair.dials, [&](const Dial& dial) { return bad(pair, dial); });
  });
}

Finding begin(const NodeFacts& node, const char* code, bool failing, std::string summary) {
  return {.code = code,
          .severity = failing ? Severity::blocker : Severity::notice,
          .certainty = failing ? Certainty::proved : Certainty::likely,
          .symptom = Symptom::hang,
          .subjects = {.nodes = {node.host}},
          .summary = std::move(summary)};
}

// --- connections ---

void add_once(const Address& address, std::vector<Address>& all) {
  if (address.loopback() || address.link_local()) return;  // the first goes by lo
  if (std::ranges::find(all, address) == all.end()) all.push_back(address);
}

// Where the name of a peer leads on this node: all that is known of one that nobody could reach,
// and a full table keeps ssh out, too.
void add_by_name(const NodeFacts& node, const std::string& peer, std::vector<Address>& all) {
  if (const auto literal = Address::parse(peer)) add_once(*literal, all);
  if (!node.names.known()) return;
  for (const Resolution& row : *node.names) {
    if (row.name != peer || !row.all.known()) continue;
    for (const Address& address : *row.all) add_once(address, all);
  }
}

// The addresses by which this node and others speak in this job.
std::vector<Address> partners(const Case& c, const NodeFacts& node) {
  std::vector<Address> all;
  for (const Prediction& prediction : c.cluster.predicted.nodes) {
    if (prediction.node == node.host) continue;
    for (const Announced& row : announced(c.cluster.job, prediction)) {
      add_once(row.choice.address, all);
    }
  }
  for (const PairFacts& pair : c.cluster.pairs) {
    for (const Dial& dial : pair.dials) {
      if (pair.from == node.host && pair.to != node.host) add_once(dial.address, all);
      const auto& source = source_of(dial);
      if (pair.to == node.host && pair.from != node.host && source) add_once(*source, all);
    }
  }
  for (const NodeFacts& peer : c.cluster.nodes) {
    if (peer.host != node.host) add_by_name(node, peer.host, all);
  }
  return all;
}

// The limit is one for the whole machine, and a container (any network namespace but the first)
// may only read it (nf_conntrack_standalone.c): there the job's packets go untracked.
std::string more_room(const Case& c, const NodeFacts& node, std::int64_t wanted) {
  const std::string limit = "net.netfilter.nf_conntrack_max";
  std::string command = fmt::format("sysctl -w {}={}\n", limit, wanted);
  command += fmt::format("if [ \"$(sysctl -n {})\" -lt {} ]; then  # a container\n", limit, wanted);
  command +=
      "  nft add table inet untracked\n"
      "  nft add chain inet untracked in '{ type filter hook prerouting priority -300; }'\n"
      "  nft add chain inet untracked out '{ type filter hook output priority -300; }'\n"
      "  nft add rule inet untracked in iif lo notrack\n"
      "  nft add rule inet untracked out oif lo notrack\n";
  for (const Address& peer : partners(c, node)) {
    const char* family = peer.v6 ? "ip6" : "ip";
    command += fmt::format(
        "  nft add rule inet untracked in {0} saddr {1} notrack\n"
        "  nft add rule inet untracked out {0} daddr {1} notrack\n",
        family, shell_quote(peer.text()));
  }
  return command + "fi";
}

void judge_conntrack(const Case& c, const NodeFacts& node, Judge& judge) {
  if (!conntrack_full(node)) return;
  const bool failing = some_dial(c, node, [](const PairFacts&, const Dial& dial) {
    return dial.outcome == Outcome::timed_out || dial.error.starts_with("connect: EPERM");
  });
  const std::int64_t count = *node.kernel->conntrack_count;
  const std::int64_t most = *node.kernel->conntrack_max;
  Finding finding =
      begin(node, "net-conntrack-full", failing,
            fmt::format("the connection tracking table of {} is full ({} of {}){}", node.host,
                        count, most, failing ? ": new connections are dropped" : ""));
  finding.evidence.push_back(
      {.node = node.host,
       .fact = "net.netfilter.nf_conntrack_count",
       .observed = fmt::format("{} of {}", count, most),
       .expected = "room for new connections",
       .command = "sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max"});
  finding.fix.push_back({.node = node.host,
                         .kind = Fix::Kind::shell,
                         .command = more_room(c, node, 4 * most),
                         .text = "as root; `conntrack -L` shows who fills it. Only the host itself "
                                 "can raise the limit: in a container the job's own packets are "
                                 "taken out of the table, so that a filter knows them by address "
                                 "and port alone"});
  judge.report(std::move(finding));
}

// --- neighbours ---

bool neighbours_full(const KernelNet& kernel) {
  return kernel.neighbours && kernel.neighbours_max &&
         table_full(*kernel.neighbours, *kernel.neighbours_max);
}

void judge_neighbours(const Case& c, const NodeFacts& node, Judge& judge) {
  if (!node.kernel.known()) return;
  const KernelNet& kernel = *node.kernel;
  const bool refused = some_dial(c, node, [&](const PairFacts& pair, const Dial& dial) {
    return pair.from == node.host && dial.error.starts_with("connect: ENOBUFS");
  });
  if (!refused && !neighbours_full(kernel)) return;
  const bool failing = refused || some_dial(c, node, [&](const PairFacts& pair, const Dial& dial) {
                         return pair.from == node.host && dial.outcome == Outcome::host_unreachable;
                       });
  const std::int64_t most = kernel.neighbours_max.value_or(1024);
  const std::string seen = kernel.neighbours ? fmt::format("{} of {}", *kernel.neighbours, most)
                                             : fmt::format("no room within {}", most);
  Finding finding =
      begin(node, "net-neighbour-table-full", failing,
            fmt::format("the neighbour table of {} is full ({}){}", node.host, seen,
                        failing ? ": it cannot find the hardware address of peers" : ""));
  finding.evidence.push_back({.node = node.host,
                              .fact = "net.ipv4.neigh.gc_thresh3",
                              .observed = seen,
                              .expected = "room for every host of the subnet",
                              .command = "ip -s neigh | wc -l; sysctl "
                                         "net.ipv4.neigh.default.gc_thresh3"});
  finding.fix.push_back({.node = node.host,
                         .kind = Fix::Kind::shell,
                         .command = fmt::format("sysctl -w net.ipv4.neigh.default.gc_thresh3={} "
                                                "net.ipv4.neigh.default.gc_thresh2={}",
                                                8 * most, 4 * most),
                         .text = "as root, on the host itself where this is a container"});
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    if (judge.see(node, "net.kernel", node.kernel) == nullptr) continue;
    judge_conntrack(c, node, judge);
    judge_neighbours(c, node, judge);
  }
}

constexpr std::string_view kConntrackCauses[] = {
    "net-peer-unreachable", "net-one-way-dropped", "net-ephemeral-dropped",
    "rendezvous-port-unreachable", "rendezvous-port-dropped"};
constexpr std::string_view kNeighbourCauses[] = {"net-peer-unreachable",
                                                 "rendezvous-port-unreachable"};
constexpr Page kConntrackPage{
    .meaning =
        "netfilter follows every connection in a table of fixed size. When it is full, first "
        "packets are dropped (`nf_conntrack: table full, dropping packet` in dmesg): from outside "
        "it looks like a firewall.",
    .confirm = "`sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max`; `dmesg`.",
    .fix = "`sysctl -w net.netfilter.nf_conntrack_max=N`, or no tracking for the job's network.",
    .verify = "The count stays below the limit while the job runs."};
constexpr Page kNeighbourPage{
    .meaning =
        "The kernel keeps at most gc_thresh3 hardware addresses (1024 by default). In a large flat "
        "subnet it runs out: connects fail with `No buffer space available` or as if the host were "
        "dead, `neighbour: arp_cache: neighbor table overflow!` stands in dmesg.",
    .confirm = "`ip -4 neigh | wc -l` against `sysctl net.ipv4.neigh.default.gc_thresh3`; `dmesg`.",
    .fix = "Raise net.ipv4.neigh.default.gc_thresh3, and gc_thresh2 with it, above the hosts.",
    .verify = "`ip -4 neigh | wc -l` stays below the limit."};
constexpr Code kCodes[] = {{.id = "net-conntrack-full",
                            .fault_class = FaultClass::firewall,
                            .worst = Severity::blocker,
                            .title = "The connection tracking table is full",
                            .causes = kConntrackCauses,
                            .page = kConntrackPage},
                           {.id = "net-neighbour-table-full",
                            .fault_class = FaultClass::no_route,
                            .worst = Severity::blocker,
                            .title = "The neighbour table is full",
                            .causes = kNeighbourCauses,
                            .page = kNeighbourPage}};

}  // namespace

extern const Check net_table_full{
    .title = "The kernel's tables have room", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
