#include <distdoctor/exit_code.h>
#include <distdoctor/unresolved_master.h>
#include <distdoctor/untested.h>

#include "diagnose/diagnose.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace distdoctor::diagnose {
namespace {

bool counts(const Finding& finding, FailOn fail_on) {
  return finding.severity >= (fail_on == FailOn::blocker ? Severity::blocker : Severity::degraded);
}

std::vector<Gap> gaps_of_nodes(const ClusterFacts& cluster) {
  std::vector<Gap> gaps;
  for (const NodeFacts& node : cluster.nodes) {
    if (!node.reached) {
      gaps.push_back({node.host, "node", {Why::failed, node.not_reached}});
    } else if (!node.same_as.empty()) {
      const std::string why = "the name leads to " + node.same_as + ", so that no other was seen";
      gaps.push_back({node.host, "node", {Why::not_collected, why}});
    }
  }
  if (cluster.nodes.empty()) gaps.push_back({"", "nodes", {Why::not_collected, "there are none"}});
  return gaps;
}

std::vector<Gap> gaps_of_traffic(const ClusterFacts& cluster) {
  std::vector<Gap> gaps;
  for (const PairFacts& pair : cluster.pairs) {
    if (pair.complete.known()) continue;
    gaps.push_back(untested(pair.from, pair.complete.why()));
  }
  return gaps;
}

// Nobody could tell a node where the meeting point is, so nothing is known of the way to it.
std::vector<Gap> gaps_of_master(const ClusterFacts& cluster) {
  std::vector<Gap> gaps;
  for (const Untried& row : cluster.untried) {
    if (row.why.text == kMasterUnresolved) gaps.push_back(untested(row.node, row.why));
  }
  return gaps;
}

// Something is wrong with the collectives, and nobody knows what; or none could be run.
std::vector<Gap> gaps_of_collectives(const ClusterFacts& cluster) {
  std::vector<Gap> gaps;
  for (const Untried& row : cluster.untried) {
    if (row.what == kCollectives) gaps.push_back({row.node, row.what, row.why});
  }
  return gaps;
}

Verdict verdict_of(bool problems, bool blind) {
  if (problems) return Verdict::problems;
  return blind ? Verdict::inconclusive : Verdict::healthy;
}

int exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::healthy:
      return kExitHealthy;
    case Verdict::problems:
      return kExitFindings;
    case Verdict::inconclusive:
      return kExitInconclusive;
  }
  return kExitOurBug;
}

}  // namespace

std::vector<MergedGap> merge_gaps(const std::vector<Gap>& gaps) {
  std::vector<MergedGap> merged;
  std::map<std::tuple<std::string, Why, std::string>, std::size_t> places;
  for (const Gap& gap : gaps) {
    const auto key = std::tuple(gap.fact, gap.why.kind, gap.why.text);
    const auto [place, added] = places.emplace(key, merged.size());
    if (added) merged.push_back({.fact = gap.fact, .why = gap.why});
    auto& nodes = merged[place->second].nodes;
    if (!gap.node.empty() && std::ranges::find(nodes, gap.node) == nodes.end()) {
      nodes.push_back(gap.node);
    }
  }
  return merged;
}

Diagnosis diagnose(const ClusterFacts& cluster,
                   const Expectations& expect,
                   const Selection& selection,
                   bool cut_short) {
  return conclude(judge(cluster, expect, all_checks(), selection), cluster, selection, cut_short);
}

Diagnosis conclude(Judged judged,
                   const ClusterFacts& cluster,
                   const Selection& selection,
                   bool cut_short) {
  const bool problems = std::ranges::any_of(
      judged.findings, [&](const Finding& finding) { return counts(finding, selection.fail_on); });

  std::vector<Gap> gaps = gaps_of_nodes(cluster);
  std::ranges::move(gaps_of_traffic(cluster), std::back_inserter(gaps));
  std::ranges::move(gaps_of_master(cluster), std::back_inserter(gaps));
  std::ranges::move(gaps_of_collectives(cluster), std::back_inserter(gaps));
  const bool blind = cut_short || judged.our_bug || !gaps.empty() ||
                     (selection.fail_on == FailOn::unknown && !judged.gaps.empty());
  std::ranges::move(judged.gaps, std::back_inserter(gaps));

  Diagnosis diagnosis{.causes = rank(std::move(judged.findings), all_checks(), cluster.job.peers),
                      .checks = std::move(judged.checks),
                      .gaps = merge_gaps(gaps),
                      .interrupted = cut_short};
  for (const NodeFacts& node : cluster.nodes) {
    diagnosis.nodes.push_back({node.host, node.reached, node.not_reached});
  }
  diagnosis.verdict = verdict_of(problems, blind);
  diagnosis.exit_code = exit_code_of(diagnosis.verdict);
  if (judged.our_bug && !problems) diagnosis.exit_code = kExitOurBug;
  return diagnosis;
}

}  // namespace distdoctor::diagnose
