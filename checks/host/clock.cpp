// The clocks of the nodes agree, so that their logs can be laid side by side.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace distdoctor::checks {
namespace {

// Kerberos, munge and with it Slurm refuse what is 5 minutes old (krb5.conf clockskew, munged).
constexpr double kRefused_ms = 300'000;

struct Clock {
  const NodeFacts* node;
  double offset_ms;
  double error_ms;
};

// The coordinator's own clock votes too: of two nodes that disagree, the one that is far from it is
// blamed.
double usual_offset(const std::vector<Clock>& clocks) {
  std::vector<double> offsets = {0.0};
  for (const Clock& clock : clocks) offsets.push_back(clock.offset_ms);
  std::ranges::sort(offsets);
  const std::size_t middle = offsets.size() / 2;
  if (offsets.size() % 2 == 1) return offsets[middle];
  const double low = offsets[middle - 1];
  return std::abs(low) < std::abs(offsets[middle]) ? low : offsets[middle];
}

std::string seconds(double ms) {
  return fmt::format("{:+.1f} s", ms / 1000);
}

void accuse(const Case& c, const Clock& clock, double usual, Judge& judge) {
  const double skew = clock.offset_ms - usual;
  const bool refused = std::abs(skew) - clock.error_ms > kRefused_ms;
  Finding finding{
      .code = "host-clock-skew",
      .severity = refused ? Severity::degraded : Severity::notice,
      .certainty = Certainty::proved,
      .symptom = refused ? Symptom::crash : Symptom::slow,
      .subjects = {.nodes = {clock.node->host}},
      .summary = fmt::format("the clock of {} is {} {} the others'", clock.node->host,
                             seconds(std::abs(skew)).substr(1), skew > 0 ? "ahead of" : "behind")};
  finding.evidence.push_back(
      {.node = clock.node->host,
       .fact = "clock",
       .observed = fmt::format("{}, give or take {:.0f} ms", seconds(skew), clock.error_ms),
       .expected = fmt::format("within {:.1f} s ({})", c.expect.max_clock_skew_ms.value / 1000,
                               c.expect.max_clock_skew_ms.origin),
       .command = "date +%s.%N; timedatectl; chronyc tracking"});
  finding.fix = {{.node = clock.node->host,
                  .kind = Fix::Kind::manual,
                  .text = "as root: chronyc makestep, or timedatectl set-ntp true, whichever keeps "
                          "the time here"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  std::vector<Clock> clocks;
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* offset = judge.see(node, "clock_offset", node.clock_offset_ms);
    const auto* error = judge.see(node, "clock_error", node.clock_error_ms);
    if (offset != nullptr && error != nullptr) clocks.push_back({&node, *offset, *error});
  }
  if (clocks.size() < 2) return;
  const double usual = usual_offset(clocks);
  for (const Clock& clock : clocks) {
    const double beyond = std::abs(clock.offset_ms - usual) - clock.error_ms;
    if (beyond > c.expect.max_clock_skew_ms.value) accuse(c, clock, usual, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "The clock of a node differs from the others'. Training itself does not mind, but "
        "logs of several nodes tell a wrong order, and beyond 5 minutes munge (so Slurm), "
        "Kerberos and TLS refuse each other.",
    .confirm = "`date +%s.%N` on all nodes at once.",
    .fix = "`chronyc makestep`, or start the time service: `timedatectl set-ntp true`.",
    .verify = "`chronyc tracking` shows an offset of milliseconds on every node."};
constexpr Code kCodes[] = {{.id = "host-clock-skew",
                            .fault_class = FaultClass::clock_skew,
                            .worst = Severity::degraded,
                            .title = "A node's clock is wrong",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check host_clock{
    .title = "The clocks of the nodes agree", .codes = kCodes, .run = run, .needs = Needs::pairs};

}  // namespace distdoctor::checks
