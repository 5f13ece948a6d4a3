// What a link promises to carry must get through: full packets as well as small ones.
#include <distdoctor/quote.h>

#include "paths.h"

namespace distdoctor::checks {
namespace {

// Small transfers are delivered, of a large one not even the first full segment.
bool swallows(const Path& path) {
  if (!path.mtu.known()) return false;
  const PathMtu& mtu = *path.mtu;
  constexpr int kLessThanASegment = 500;
  const bool large_is_lost =
      mtu.small_arrived && !mtu.bulk_arrived && mtu.bulk_bytes < kLessThanASegment;
  return large_is_lost && (!mtu.largest || *mtu.largest < mtu.link_mtu);
}

Evidence evidence_of(const BadPath& row) {
  const PathMtu& mtu = *row.path->mtu;
  const std::string to = row.path->destination.text();
  const int headers = row.path->destination.v6 ? 48 : 28;
  return {
      .node = row.from->host,
      .fact = "path to " + to,
      .observed = fmt::format(
          "{}; a transfer in full segments: {} bytes delivered",
          mtu.largest ? fmt::format("packets of {} bytes pass, larger ones vanish", *mtu.largest)
                      : "UDP is not answered, small TCP segments pass",
          mtu.bulk_bytes),
      .expected = fmt::format("{} bytes, the MTU of {}", mtu.link_mtu, row.path->interface),
      .command = fmt::format("ping -M do -c 3 -s {} {}", mtu.link_mtu - headers, shell_quote(to))};
}

// The largest size that passes everywhere; none where one path did not tell.
std::optional<int> safe_size(const std::vector<BadPath>& paths) {
  int safe = 65536;
  for (const BadPath& row : paths) {
    const std::optional<int> largest = row.path->mtu->largest;
    if (!largest) return std::nullopt;
    safe = std::min(safe, *largest);
  }
  return safe;
}

std::vector<Fix> fixes_for(const std::vector<BadPath>& paths,
                           const std::vector<std::string>& hosts) {
  std::vector<Fix> fixes;
  const auto safe = safe_size(paths);
  for (const std::string& host : hosts) {
    std::set<std::string> links;
    for (const BadPath& row : paths) {
      const bool end = row.from->host == host || row.to->host == host;
      if (end) links.insert(interface_at(row, host));
    }
    links.erase("");
    for (const std::string& link : links) {
      if (!safe) continue;
      fixes.push_back(
          {.node = host,
           .kind = Fix::Kind::shell,
           .command = fmt::format("ip link set dev {} mtu {}", shell_quote(link), *safe),
           .text =
               "as root, with no job on the node: many drivers take the link down for a moment. Or "
               "raise the MTU of the switch port or tunnel between"});
    }
  }
  if (fixes.empty()) {
    fixes.push_back({.node = hosts.front(),
                     .kind = Fix::Kind::manual,
                     .text = "lower the MTU of the link, 1500 first, or raise that of the switch "
                             "port or tunnel between; let ICMP \"fragmentation needed\" pass"});
  }
  return fixes;
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  see_paths(c, "path.mtu", &Path::mtu, judge);
  const auto paths = bad_paths(c.cluster, swallows);
  if (paths.empty()) return;
  const auto safe = safe_size(paths);
  Finding finding{.code = "net-mtu-black-hole",
                  .severity = capped_by_purpose(c.cluster.job, Severity::blocker, paths),
                  .certainty = safe ? Certainty::proved : Certainty::likely,
                  .symptom = Symptom::hang,
                  .summary = ""};
  add_ends(paths, finding);
  finding.summary = fmt::format(
      "large packets vanish at {}: the links say MTU {}, {}", whom(c, finding.subjects.nodes),
      paths.front().path->mtu->link_mtu,
      safe ? fmt::format("{} bytes get through", *safe) : "only small ones get through");
  for (const BadPath& row : paths) finding.evidence.push_back(evidence_of(row));
  finding.fix = fixes_for(paths, finding.subjects.nodes);
  judge.report(std::move(finding));
}

constexpr std::string_view kCauses[] = {"collective-hang", "collective-interface-wrong"};
constexpr Page kPage{
    .meaning =
        "Rendezvous and all small messages work, the first large tensor never arrives: something "
        "on the way carries less than the links say, and the message that would tell TCP (ICMP "
        "fragmentation needed) does not come back. A switch port at 1500 between hosts at 9000 "
        "is the usual case.",
    .confirm =
        "`ping -M do -s 1472 PEER` is answered, `ping -M do -s 8972 PEER` is not (IPv4, MTU 9000).",
    .fix =
        "Raise the MTU of the switch ports or the tunnel, or lower the links of all nodes to what "
        "passes.",
    .verify = "`ping -M do -s N PEER` with N = MTU - 28 is answered, in both directions."};
constexpr Code kCodes[] = {{.id = "net-mtu-black-hole",
                            .fault_class = FaultClass::mtu_mismatch,
                            .worst = Severity::blocker,
                            .title = "Large packets vanish on the way",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_mtu_black_hole{
    .title = "Full packets get through", .codes = kCodes, .run = run, .needs = Needs::pairs};

}  // namespace distdoctor::checks
