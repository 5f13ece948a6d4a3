// The launch calls of a job, as evidence. Look-ups that the checks of this folder share.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/setting_text.h>
#include <distdoctor/views.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::checks::env {

// One call a node, which numbers the nodes by its flags.
inline bool numbers_nodes(const Launch& launch) {
  return launch.kind == LauncherKind::torchrun || launch.kind == LauncherKind::torch_launch ||
         launch.kind == LauncherKind::accelerate;
}

// The srun that starts this call: the nearest one before it.
inline const Launch* srun_above(const std::vector<Launch>& launches, const Launch& launch) {
  const Launch* above = nullptr;
  for (const Launch& earlier : launches) {
    if (&earlier == &launch) break;
    if (earlier.kind == LauncherKind::srun) above = &earlier;
  }
  return launch.under_srun ? above : nullptr;
}

// To see the call again: of a process, of a script, of what was typed.
inline std::string seen_again(const Launch& launch) {
  const std::string& where = launch.origin.where;
  if (const auto pid = pid_in(where)) return fmt::format("tr '\\0' ' ' < /proc/{}/cmdline", *pid);
  const auto colon = where.rfind(':');
  const std::string_view name = launch.kind == LauncherKind::srun ? "srun" : "node";
  if (colon == std::string::npos || colon == 0) return fmt::format("history | grep {}", name);
  return fmt::format("grep -n {} {}", name, shell_quote(where.substr(0, colon)));
}

// Whether a launch call is known at all; else the check has nothing to look at.
inline bool any_launch(const Case& c, Judge& judge) {
  if (c.cluster.job.launches.empty()) judge.skip("no launch of the job is known");
  return !c.cluster.job.launches.empty() && !c.cluster.nodes.empty();
}

// Where it was seen; one that was said to us is shown at the first node.
inline const NodeFacts& node_of(const Case& c, const Launch& launch) {
  const NodeFacts* node = find_node(c.cluster, launch.origin.node);
  return node != nullptr ? *node : c.cluster.nodes.front();
}

inline void add_launch(const Case& c,
                       const Launch& launch,
                       const std::string& what,
                       std::string observed,
                       std::string expected,
                       Finding& finding) {
  const NodeFacts& node = node_of(c, launch);
  finding.evidence.push_back({.node = node.host,
                              .fact = fmt::format("{} ({})", what, launch.origin.where),
                              .observed = std::move(observed),
                              .expected = std::move(expected),
                              .command = seen_again(launch)});
  if (launch.origin.source != Source::process) return;
  auto& nodes = finding.subjects.nodes;
  if (std::ranges::find(nodes, node.host) == nodes.end()) nodes.push_back(node.host);
}

inline Fix by_hand(std::string text) {
  return {.node = "*", .kind = Fix::Kind::manual, .text = std::move(text)};
}

inline Finding launch_finding(const char* code, std::string summary) {
  return {.code = code,
          .severity = Severity::blocker,
          .certainty = Certainty::proved,
          .symptom = Symptom::hang,
          .summary = std::move(summary)};
}

}  // namespace distdoctor::checks::env
