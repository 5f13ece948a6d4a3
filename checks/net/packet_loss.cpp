// A path that loses packets makes TCP crawl.
#include <distdoctor/quote.h>

#include "paths.h"

namespace distdoctor::checks {
namespace {

double share(int sent, int received) {
  return sent > 0 ? static_cast<double>(sent - received) / sent : 0;
}

// Believed when it was seen twice: the smaller of both rounds counts.
double loss_of(const Loss& loss) {
  return std::min(share(loss.sent, loss.received),
                  share(loss.repeated_sent, loss.repeated_received));
}

Evidence evidence_of(const Case& c, const BadPath& row) {
  const Loss& loss = *row.path->loss;
  const std::string to = row.path->destination.text();
  return {
      .node = row.from->host,
      .fact = "loss to " + to,
      .observed = fmt::format(
          "{:.1f} % of {} packets, then {:.1f} % of {}", 100 * share(loss.sent, loss.received),
          loss.sent, 100 * share(loss.repeated_sent, loss.repeated_received), loss.repeated_sent),
      .expected =
          fmt::format("{} % at most ({})", 100 * c.expect.max_loss.value, c.expect.max_loss.origin),
      .command = fmt::format("ping -q -c 1000 -i 0.002 {}", shell_quote(to))};
}

std::vector<Fix> fixes_for(const std::vector<BadPath>& paths,
                           const std::vector<std::string>& hosts) {
  std::vector<Fix> fixes;
  for (const std::string& host : hosts) {
    std::string link;
    for (const BadPath& row : paths) {
      if (link.empty() && (row.from->host == host || row.to->host == host)) {
        link = interface_at(row, host);
      }
    }
    fixes.push_back({.node = host,
                     .kind = Fix::Kind::manual,
                     .text = fmt::format("look for what grows: `ip -s -s link show dev {}`, "
                                         "`ethtool -S {}`, the counters of the switch port; "
                                         "change cable or optics, remove rate limits",
                                         shell_quote(link), shell_quote(link))});
  }
  return fixes;
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  see_paths(c, "path.loss", &Path::loss, judge);
  const auto paths = bad_paths(c.cluster, [&](const Path& path) {
    return path.loss.known() && loss_of(*path.loss) > c.expect.max_loss.value;
  });
  if (paths.empty()) return;
  const auto worst =
      std::ranges::max(paths, {}, [](const BadPath& row) { return loss_of(*row.path->loss); });
  Finding finding{.code = "net-packet-loss",
                  .severity = capped_by_purpose(c.cluster.job, Severity::degraded, paths),
                  .certainty = Certainty::proved,
                  .symptom = Symptom::slow,
                  .summary = ""};
  add_ends(paths, finding);
  finding.summary = fmt::format("up to {:.1f} % of packets are lost at {}",
                                100 * loss_of(*worst.path->loss), whom(c, finding.subjects.nodes));
  for (const BadPath& row : paths) finding.evidence.push_back(evidence_of(c, row));
  finding.fix = fixes_for(paths, finding.subjects.nodes);
  judge.report(std::move(finding));
}

constexpr std::string_view kCauses[] = {"net-wire-slow", "collective-hang"};
constexpr Page kPage{
    .meaning =
        "Of a thousand small packets of ours more than one in a hundred did not arrive, twice. "
        "TCP sends them again and slows down: all ranks wait for the slowest stream.",
    .confirm =
        "`ping -q -c 1000 -i 0.002 PEER`; `nstat -az TcpRetransSegs` before and after a job.",
    .fix =
        "Find the counter that grows: `ip -s -s link`, `ethtool -S LINK` (crc, drop, fifo), the "
        "switch port's. A bad cable or optic, a duplex or speed mismatch, a rate limit, a full "
        "queue.",
    .verify = "`ping -q -c 1000 -i 0.002 PEER` says 0% packet loss."};
constexpr Code kCodes[] = {{.id = "net-packet-loss",
                            .fault_class = FaultClass::packet_loss,
                            .worst = Severity::degraded,
                            .title = "Packets are lost between nodes",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_packet_loss{
    .title = "No packets are lost on the way", .codes = kCodes, .run = run, .needs = Needs::pairs};

}  // namespace distdoctor::checks
