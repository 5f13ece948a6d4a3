// Full TCP segments must get through where small ones do, whatever UDP says of the path.
#include <distdoctor/bulk_probe.h>
#include <distdoctor/firewall_fix.h>
#include <distdoctor/quote.h>

#include "packet_lengths.h"
#include "paths.h"

#include <map>
#include <optional>

namespace distdoctor::checks {
namespace {

// A path that loses many packets delivers little, too: that is net/packet_loss.
bool loses_packets(const Path& path) {
  if (!path.loss.known() || path.loss->sent == 0) return false;
  return path.loss->received * 5 < path.loss->sent * 4;
}

bool full_size_passes(const Path& path) {
  return path.mtu->largest.value_or(-1) >= path.mtu->link_mtu;
}

// Nothing of the bulk arrived, twice, while UDP in full size and small TCP did.
bool swallows_segments(const Path& path) {
  if (!path.mtu.known() || loses_packets(path)) return false;
  const PathMtu& mtu = *path.mtu;
  return mtu.small_arrived && !mtu.bulk_arrived && mtu.bulk_bytes == 0 && full_size_passes(path);
}

// Some of it came before the deadline: slow, for a reason that this does not tell.
void note_unfinished(const ClusterFacts& cluster, Judge& judge) {
  for (const PairFacts& pair : cluster.pairs) {
    for (const Path& path : pair.paths) {
      if (!path.mtu.known() || path.mtu->bulk_arrived || path.mtu->bulk_bytes == 0) continue;
      judge.miss({.node = pair.from,
                  .fact = "path.bulk",
                  .why = {Why::timed_out, fmt::format("{} of {} bytes were delivered to {} in time",
                                                      path.mtu->bulk_bytes, kBulkBytes, pair.to)}});
    }
  }
}

// --- a rule about the length of packets ---

// A segment that fills a packet is among the lengths that it asks for, or what the kernel makes of
// several of them (GRO) before a filter sees it.
bool asks_for_long_ones(const FilterRule& rule, int full) {
  const auto lengths = lengths_of(rule.text);
  return lengths && lengths->to >= full;
}

bool ends_packets(const FilterRule& rule) {
  return rule.verdict == FilterVerdict::drop || rule.verdict == FilterVerdict::reject;
}

// None of its conditions that can be followed speaks against it.
bool may_meet(const FilterRule& rule, const Packet& packet) {
  return std::ranges::none_of(rule.conditions, [&](const FilterCondition& condition) {
    return holds(condition, packet, true) == Holds::no;
  });
}

std::optional<FilterStop> length_rule(const Passage& passage, int full) {
  const NodeFacts& node = *passage.node;
  if (!node.firewall.known()) return std::nullopt;
  constexpr std::uint16_t kAPickedPort = 40'000;
  Packet packet = filters_detail::packet_of(passage, kAPickedPort);
  packet.answer = true;  // in the middle of a connection: established
  for (const FilterChain& chain : node.firewall->chains) {
    const bool on_the_way =
        chain.hook.empty() || packet_filter_detail::hook_order(passage.way, chain.hook) >= 0;
    for (const FilterRule& rule : chain.rules) {
      if (!on_the_way || !ends_packets(rule) || !asks_for_long_ones(rule, full)) continue;
      if (!may_meet(rule, packet)) continue;
      return FilterStop{.tool = chain.tool,
                        .family = chain.family,
                        .table = chain.table,
                        .chain = chain.name,
                        .base = chain.name,
                        .number = rule.number,
                        .before = rule.number,
                        .verdict = rule.verdict,
                        .packets = rule.packets,
                        .text = rule.text};
    }
  }
  return std::nullopt;
}

// TCP crawls where each long packet is lost and only what is sent again, cut small, arrives. That
// alone may be a slow path; beside such a rule it is not.
bool crawls(const Path& path) {
  if (!path.mtu.known() || loses_packets(path)) return false;
  const PathMtu& mtu = *path.mtu;
  return mtu.small_arrived && !mtu.bulk_arrived && mtu.bulk_bytes * 4 < kBulkBytes;
}

Passage at_sender(const BadPath& row) {
  return {.node = row.from,
          .way = Way::out,
          .own = row.path->source,
          .peer = row.path->destination,
          .interface = row.path->interface};
}
Passage at_receiver(const BadPath& row) {
  return {.node = row.to, .own = row.path->destination, .peer = row.path->source};
}

bool has_length_rule(const BadPath& row) {
  const int full = row.path->mtu->link_mtu;
  return length_rule(at_sender(row), full) || length_rule(at_receiver(row), full);
}

// A node whose own rule ends the long packets, with the peers that it ends them for.
struct Filtering {
  const NodeFacts* node;
  Opening opening;
  std::vector<Closed> closed;
};
using AllFiltering = std::map<std::pair<std::string, Way>, Filtering>;

void ask(const Passage& passage, int full, AllFiltering& all) {
  const auto stop = length_rule(passage, full);
  if (!stop) return;
  const NodeFacts& node = *passage.node;
  Filtering& known = all.try_emplace({node.host, passage.way},
                                     Filtering{.node = &node,
                                               .opening = {.node = node.host,
                                                           .peers = {},
                                                           .ports = {1, 65535},
                                                           .interface = passage.interface,
                                                           .way = passage.way},
                                               .closed = {}})
                         .first->second;
  known.closed.push_back({passage.peer, *stop});
}

AllFiltering filtering(const std::vector<BadPath>& paths) {
  AllFiltering all;
  for (const BadPath& row : paths) {
    ask(at_sender(row), row.path->mtu->link_mtu, all);
    ask(at_receiver(row), row.path->mtu->link_mtu, all);
  }
  return all;
}

// --- the finding ---

Evidence evidence_of(const BadPath& row) {
  const PathMtu& mtu = *row.path->mtu;
  const std::string to = row.path->destination.text();
  return {.node = row.from->host,
          .fact = "bulk TCP to " + to,
          .observed = fmt::format("{} of {} bytes delivered{}; UDP packets of {} bytes and "
                                  "small TCP segments pass",
                                  mtu.bulk_bytes, kBulkBytes, mtu.bulk_bytes == 0 ? ", twice" : "",
                                  mtu.largest.value_or(0)),
          .expected = "all of it",
          .command = fmt::format("head -c 262144 /dev/zero | nc -N -w 5 {} PORT (there: nc -l PORT "
                                 "| wc -c)",
                                 shell_quote(to))};
}

std::vector<Fix> switch_offloads_off(const std::vector<BadPath>& paths,
                                     const std::vector<std::string>& hosts) {
  std::vector<Fix> fixes;
  for (const std::string& host : hosts) {
    std::set<std::string> links;
    for (const BadPath& row : paths) {
      if (row.from->host == host || row.to->host == host) links.insert(interface_at(row, host));
    }
    links.erase("");
    for (const std::string& link : links) {
      fixes.push_back({.node = host,
                       .kind = Fix::Kind::shell,
                       .command = fmt::format("ethtool -K {} tso off gso off", shell_quote(link)),
                       .text = "as root, to try: if bulk data passes then, the card or its driver "
                               "cuts large sends wrongly (newer driver or firmware). If not, "
                               "`tso on gso on` again, and look for a filter by length or an MTU "
                               "that is smaller on the way"});
    }
  }
  return fixes;
}

void add_rules(const AllFiltering& all, Finding& finding) {
  for (const auto& [key, at] : all) {
    std::vector<std::string> whom;
    for (const Closed& closed : at.closed) whom.push_back(closed.peer.text());
    finding.evidence.push_back(distdoctor::evidence_of(at.node->host, at.closed.front().stop,
                                                       fmt::format("{}", fmt::join(whom, ", "))));
    for (Fix& fix : open_before_fix(at.opening, *at.node->firewall, at.closed)) {
      finding.fix.push_back(std::move(fix));
    }
  }
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  see_paths(c, "path.mtu", &Path::mtu, judge);
  note_unfinished(c.cluster, judge);
  auto paths = bad_paths(c.cluster, crawls);
  std::erase_if(paths, [](const BadPath& row) {
    return !swallows_segments(*row.path) && !(full_size_passes(*row.path) && has_length_rule(row));
  });
  if (paths.empty()) return;
  Finding finding{.code = "net-bulk-lost",
                  .severity = capped_by_purpose(c.cluster.job, Severity::blocker, paths),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::hang,
                  .summary = ""};
  add_ends(paths, finding);
  for (const BadPath& row : paths) finding.evidence.push_back(evidence_of(row));
  const auto rules = filtering(paths);
  add_rules(rules, finding);
  std::string why = "an offload of the card, or a filter by length on the way";
  if (!rules.empty()) {
    const Filtering& first = rules.begin()->second;
    why = fmt::format("{} on {}", text_of(first.closed.front().stop), first.node->host);
  } else {
    finding.fix = switch_offloads_off(paths, finding.subjects.nodes);
  }
  finding.summary = fmt::format("bulk TCP data vanishes at {}, small segments pass: {}",
                                whom(c, finding.subjects.nodes), why);
  judge.report(std::move(finding));
}

constexpr std::string_view kCauses[] = {"collective-hang", "collective-interface-wrong"};
constexpr Page kPage{
    .meaning =
        "Connections open and small messages pass, even UDP packets of full size do; of a TCP "
        "transfer in full segments nothing arrived, in two attempts. Rendezvous works, the first "
        "tensor hangs. Usual reasons: segmentation offload (TSO, GSO) of a card, driver or tunnel "
        "that is broken, and a packet filter's rule about the length of packets.",
    .confirm =
        "`nc -l 5000 | wc -c` on one node, `head -c 262144 /dev/zero | nc -N NODE 5000` on the "
        "other; `nstat -az TcpRetransSegs TcpExtTCPTimeouts` grows meanwhile.",
    .fix =
        "Take the filter's rule away or accept the peers before it; else try `ethtool -K LINK tso "
        "off gso off` on the sender, then a newer driver or firmware.",
    .verify = "The transfer above arrives whole, in both directions."};
constexpr Code kCodes[] = {{.id = "net-bulk-lost",
                            .fault_class = FaultClass::packet_loss,
                            .worst = Severity::blocker,
                            .title = "Small TCP segments pass, bulk data vanishes",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_bulk_lost{
    .title = "Bulk TCP data gets through", .codes = kCodes, .run = run, .needs = Needs::pairs};

}  // namespace distdoctor::checks
