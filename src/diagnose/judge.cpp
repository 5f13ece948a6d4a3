#include <distdoctor/areas.h>
#include <distdoctor/gpus.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "diagnose/diagnose.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace distdoctor::diagnose {
namespace {

bool names(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// A check is named by its area or its path.
bool named(const std::vector<std::string>& words, const NamedCheck& check) {
  return names(words, check.name) || names(words, area_of(check.name));
}

bool names_a_code(const std::vector<std::string>& words, const NamedCheck& check) {
  return std::ranges::any_of(check.check->codes,
                             [&](const Code& code) { return names(words, code.id); });
}

bool runs(const Selection& selection, const NamedCheck& check) {
  if (named(selection.skip, check)) return false;
  return selection.only.empty() || named(selection.only, check) ||
         names_a_code(selection.only, check);
}

bool wanted(const Selection& selection, const NamedCheck& check, std::string_view code) {
  if (names(selection.skip, code)) return false;
  return selection.only.empty() || named(selection.only, check) || names(selection.only, code);
}

CheckResult result_of(Severity severity) {
  switch (severity) {
    case Severity::notice:
      return CheckResult::notice;
    case Severity::degraded:
      return CheckResult::degraded;
    case Severity::blocker:
      return CheckResult::blocker;
  }
  return CheckResult::unknown;
}

// A node whose agent never answered is one gap, made elsewhere, and not one for each fact.
bool of_a_reached_node(const ClusterFacts& cluster, const Gap& gap) {
  const NodeFacts* node = find_node(cluster, gap.node);
  return node == nullptr || node->reached;
}

struct Run {
  std::vector<Finding> findings = {};
  std::vector<Gap> gaps = {};
  CheckLine line = {};
  bool our_bug = false;
};

bool lacks_rdma(const NodeFacts& node) {
  return node.rdma.known() && node.rdma->devices.empty();
}

// Why the cluster has nothing for it; empty: it has.
std::string_view nothing_for(Needs needs, const ClusterFacts& cluster) {
  switch (needs) {
    case Needs::nodes:
      return "";
    case Needs::pairs:
      return cluster.nodes.size() < 2 && cluster.pairs.empty() ? "one node alone" : "";
    case Needs::rdma:
      return std::ranges::all_of(cluster.nodes, lacks_rdma) ? "no node has an RDMA device" : "";
    case Needs::gpus:
      return std::ranges::all_of(cluster.nodes, lacks_gpus) ? "no node has a GPU" : "";
    case Needs::runs:
      return cluster.experiments.empty() ? "no collective was run" : "";
  }
  return "";
}

// A check that had nothing to look at has not passed.
void note_nothing_seen(const ClusterFacts& cluster, Needs needs, CheckLine& line) {
  if (line.result != CheckResult::pass) return;
  if (needs != Needs::runs && std::ranges::none_of(cluster.nodes, &NodeFacts::reached)) {
    line.result = CheckResult::unknown;
    line.detail = "no node was reached";
  } else if (const auto nothing = nothing_for(needs, cluster); !nothing.empty()) {
    line.result = CheckResult::skipped;
    line.detail = nothing;
  }
}

void describe(Run& run, const Judge& judge, std::size_t unreached) {
  if (!run.findings.empty()) {
    const Finding& worst = std::ranges::max(run.findings, {}, &Finding::severity);
    run.line.result = result_of(worst.severity);
    run.line.detail = worst.summary;
  } else if (!run.gaps.empty()) {
    run.line.result = CheckResult::unknown;
    const Gap& gap = run.gaps.front();
    run.line.detail = gap.fact + (gap.node.empty() ? "" : " of " + gap.node) + ": " + gap.why.text;
  } else if (unreached > 0) {
    run.line.result = CheckResult::unknown;
    run.line.detail = "not all nodes were reached";
  } else if (judge.skipped()) {
    run.line.result = CheckResult::skipped;
    run.line.detail = *judge.skipped();
  }
}

Run run_check(const Case& c, const NamedCheck& check, const Selection& selection) {
  Run run{.line = {.name = std::string(check.name), .title = std::string(check.check->title)}};
  Judge judge(check.check->codes);
  try {
    check.check->run(c, judge);
  } catch (const std::exception& error) {
    run.our_bug = true;
    run.gaps.push_back({.node = "",
                        .fact = run.line.name,
                        .why = {Why::failed, std::string("this check failed, which is our bug: ") +
                                                 error.what()}});
  }
  for (const Finding& finding : judge.findings()) {
    if (wanted(selection, check, finding.code)) run.findings.push_back(finding);
  }
  std::size_t unreached = 0;
  for (const Gap& gap : judge.gaps()) {
    if (of_a_reached_node(c.cluster, gap)) {
      run.gaps.push_back(gap);
    } else {
      ++unreached;
    }
  }
  describe(run, judge, unreached);
  note_nothing_seen(c.cluster, check.check->needs, run.line);
  return run;
}

std::vector<NamedCheck> in_module_order(std::span<const NamedCheck> checks) {
  std::vector<NamedCheck> ordered(checks.begin(), checks.end());
  std::ranges::stable_sort(ordered, {}, [](const NamedCheck& check) {
    return std::tuple(area_order(area_of(check.name)), check.name);
  });
  return ordered;
}

// A machine that was named twice is judged once, under the name that came first: else it disagrees
// with itself. Whether it was named twice is for the checks of the run.
ClusterFacts each_machine_once(const ClusterFacts& cluster) {
  ClusterFacts once = cluster;
  std::set<std::string, std::less<>> again;
  for (const NodeFacts& node : cluster.nodes) {
    if (!node.same_as.empty()) again.insert(node.host);
  }
  if (again.empty()) return once;
  std::erase_if(once.nodes, [&](const NodeFacts& node) { return again.contains(node.host); });
  std::erase_if(once.pairs, [&](const PairFacts& pair) {
    return again.contains(pair.from) || again.contains(pair.to);
  });
  std::erase_if(once.untried, [&](const Untried& row) { return again.contains(row.node); });
  std::erase_if(once.predicted.nodes,
                [&](const Prediction& prediction) { return again.contains(prediction.node); });
  std::erase_if(once.job.launches,
                [&](const Launch& launch) { return again.contains(launch.origin.node); });
  return once;
}

}  // namespace

bool leaves_any(const Selection& selection, std::span<const NamedCheck> checks) {
  return std::ranges::any_of(checks, [&](const NamedCheck& check) {
    return runs(selection, check) && std::ranges::any_of(check.check->codes, [&](const Code& code) {
             return wanted(selection, check, code.id);
           });
  });
}

Judged judge(const ClusterFacts& cluster,
             const Expectations& expect,
             std::span<const NamedCheck> checks,
             const Selection& selection) {
  Judged judged;
  const ClusterFacts once = each_machine_once(cluster);
  for (const NamedCheck& check : in_module_order(checks)) {
    if (!runs(selection, check)) continue;
    const bool of_the_run = area_of(check.name) == "run";
    Run run =
        run_check({.cluster = of_the_run ? cluster : once, .expect = expect}, check, selection);
    std::ranges::move(run.findings, std::back_inserter(judged.findings));
    std::ranges::move(run.gaps, std::back_inserter(judged.gaps));
    judged.checks.push_back(std::move(run.line));
    judged.our_bug = judged.our_bug || run.our_bug;
  }
  return judged;
}

}  // namespace distdoctor::diagnose
