// No rank of a run was killed by somebody else: that tells of its process, not of what carries the
// data.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/run_ending.h>

#include "isolations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

struct Kill {
  const Experiment* run;
  const RankRun* rank;
  std::string_view signal;
};

std::vector<Kill> kills_on(const Case& c, const std::string& host) {
  std::vector<Kill> kills;
  for (const Experiment& run : c.cluster.experiments) {
    for (const RankRun& rank : run.ranks) {
      if (rank.place.node != host) continue;
      if (const auto signal = killed_from_outside(rank)) kills.push_back({&run, &rank, *signal});
    }
  }
  return kills;
}

bool same_setup(const Experiment& a, const Experiment& b) {
  return a.switches == b.switches &&
         std::ranges::equal(a.ranks, b.ranks, {}, &RankRun::place, &RankRun::place);
}

bool got_through(const Case& c, const Experiment& killed) {
  return std::ranges::any_of(c.cluster.experiments, [&](const Experiment& run) {
    return same_setup(run, killed) && !disturbed(run) && run.outcome != RunOutcome::not_run;
  });
}

// Once is chance; what happens again is the job's trouble, too.
Severity severity_of(const Case& c, const std::vector<Kill>& kills) {
  std::set<int> runs;
  for (const Kill& kill : kills) runs.insert(kill.run->number);
  if (runs.size() < 2) return Severity::notice;
  const bool never =
      std::ranges::none_of(kills, [&](const Kill& kill) { return got_through(c, *kill.run); });
  return never ? Severity::blocker : Severity::degraded;
}

// How long before the log was read the runs can have begun.
double since_the_runs(const Case& c) {
  double seconds = 60;  // what lies between them
  for (const Experiment& run : c.cluster.experiments) seconds += run.seconds;
  return seconds;
}

// "Out of memory: Killed process 4711 (gloo_allreduce) total-vm:..." (mm/oom_kill.c): of a rank of
// these runs, not of what had such a name before.
std::vector<std::string> kernels_words(const Case& c,
                                       const NodeFacts& node,
                                       const std::vector<Kill>& kills) {
  std::vector<std::string> lines;
  const bool killed = std::ranges::any_of(
      kills, [](const Kill& kill) { return kill.signal.find("SIGKILL") != std::string::npos; });
  if (!node.kernel_log.known() || !killed) return lines;
  const double first = node.kernel_log->now_s - since_the_runs(c);
  for (const KernelLine& line : node.kernel_log->lines) {
    const bool ours = line.text.find("Killed process ") != std::string::npos &&
                      (line.text.find("(gloo_allreduce)") != std::string::npos ||
                       line.text.find("(vendor)") != std::string::npos);
    if (ours && line.uptime_s >= first) lines.push_back(line.text);
  }
  return lines;
}

constexpr const char* kLook = "dmesg -T | grep -iE 'out of memory|killed process'";

void add_evidence(const NodeFacts& node,
                  const std::vector<Kill>& kills,
                  const std::vector<std::string>& words,
                  Finding& finding) {
  for (const Kill& kill : kills) {
    finding.evidence.push_back(
        {.node = node.host,
         .fact = fmt::format("rank {} of run {} ({})", kill.rank->rank, kill.run->number,
                             kill.run->what),
         .observed = fmt::format("killed by {} after {}", kill.signal, slug(kill.rank->reached)),
         .expected = "ends by itself",
         .command = kLook});
  }
  for (const std::string& line : words) {
    finding.evidence.push_back({.node = node.host,
                                .fact = "kernel log",
                                .observed = line,
                                .expected = "nothing of the kind",
                                .command = kLook});
  }
}

Fix fix_of(const NodeFacts& node, bool by_kernel) {
  return by_hand(node.host,
                 by_kernel ? "it ran out of memory: see who takes it (`ps --sort=-rss aux`), or "
                             "raise the limit of the control group"
                           : "find who sends it: the kernel for want of memory (`dmesg -T`, "
                             "memory.events of the control group), a resource manager, a script");
}

void report(const Case& c, const NodeFacts& node, const std::vector<Kill>& kills, Judge& judge) {
  const Kill& first = kills.front();
  const auto words = kernels_words(c, node, kills);
  const bool by_kernel = !words.empty();
  Finding finding{
      .code = "collective-rank-killed",
      .severity = severity_of(c, kills),
      .certainty = Certainty::proved,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format(
          "rank {} on {} was killed by {} in run {}{}: {}, and no evidence about the network",
          first.rank->rank, node.host, first.signal, first.run->number,
          kills.size() > 1 ? fmt::format(" and {} more", kills.size() - 1) : "",
          by_kernel ? "the kernel did it for want of memory" : "somebody else ended that process")};
  add_evidence(node, kills, words, finding);
  finding.fix = {fix_of(node, by_kernel)};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto kills = kills_on(c, node.host);
    if (!kills.empty()) report(c, node, kills, judge);
  }
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "A signal that no library sends to its own process (SIGKILL, SIGTERM) ended a rank of a "
        "run: the kernel's out-of-memory killer, a limit of the control group, a resource manager "
        "or a person. The run says nothing of interfaces or GPUs, and is made again. Once is a "
        "notice; a rank that is killed again and again would be killed in the job, too.",
    .confirm =
        "`dmesg -T | grep -i 'killed process'`; oom_kill in the control group's "
        "memory.events; the resource manager's log.",
    .fix = "More memory for the job, or a higher limit; or stop what sends the signal.",
    .verify = "`distdoctor bisect` again: all of its ranks end by themselves."};
constexpr Code kCodes[] = {{.id = "collective-rank-killed",
                            .fault_class = FaultClass::rank_missing,
                            .worst = Severity::blocker,
                            .title = "A rank was killed from outside",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check collective_killed{
    .title = "No rank was killed from outside", .codes = kCodes, .run = run, .needs = Needs::runs};

}  // namespace distdoctor::checks
