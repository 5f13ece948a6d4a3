#include "support/check_cases.h"

#include "support/planted_names.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::testing {
namespace {

bool is_real(const ClusterFacts& cluster, std::string_view host) {
  return std::ranges::find(cluster.nodes, host, &NodeFacts::host) != cluster.nodes.end();
}

// "{}", "{peer}" or "<peer>": a name was not filled in.
bool has_placeholder(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{' && text[i] != '<') continue;
    const auto end =
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-", i + 1);
    if (end == std::string_view::npos) return false;
    if (text[i] == '{' ? text[end] == '}' : text[end] == '>' && end > i + 1) return true;
  }
  return false;
}

// What a job on the node may not outlive.
bool may_end_jobs(std::string_view command) {
  constexpr std::array<std::string_view, 12> kHarm = {
      "systemctl restart", "systemctl stop", "mount -t ",     "umount",      "addr del", " mtu ",
      "hostname ",         "gpu-reset",      "nvidia-smi -r", "modprobe -r", "rmmod",    "flush"};
  return std::ranges::any_of(
      kHarm, [&](std::string_view word) { return command.find(word) != std::string_view::npos; });
}
bool names_the_risk(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWarnings = {"no job", "ends", "drain"};
  return std::ranges::any_of(
      kWarnings, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// What holds for every finding of every check.
void check_decency(const ClusterFacts& cluster, const Finding& finding) {
  CHECK_FALSE(finding.summary.empty());
  for (const std::string& node : finding.subjects.nodes) CHECK(is_real(cluster, node));
  for (const Evidence& row : finding.evidence) {
    CHECK(is_real(cluster, row.node));
    CHECK_FALSE(row.fact.empty());
    CHECK_FALSE(row.command.empty());
    CHECK(row.observed != row.expected);
  }
  for (const Fix& fix : finding.fix) {
    CHECK((fix.node == "*" || is_real(cluster, fix.node)));
    CHECK(fix.command.empty() == (fix.kind != Fix::Kind::shell));
    CHECK(fix.env.empty() == (fix.kind != Fix::Kind::env));
    CHECK_FALSE(fix.text.empty());
    CHECK_FALSE(has_placeholder(fix.command));
    if (may_end_jobs(fix.command)) CHECK(names_the_risk(fix.text));
  }
}

// What a person would paste, on one line.
std::string fix_line(const Fix& fix) {
  std::string line = fix.node + ": " + fix.command;
  if (fix.kind == Fix::Kind::manual) line += "(manual)";
  for (const auto& [name, value] : fix.env) {
    if (!line.ends_with(": ")) line += " ";
    line += name + (value ? "=" + *value : " unset");
  }
  return line;
}

void check_verdict(const Finding& finding, const Verdict& verdict) {
  CHECK(finding.code == verdict.code);
  CHECK(finding.severity == verdict.severity);
  CHECK(finding.certainty == verdict.certainty);
  CHECK(finding.symptom == verdict.symptom);
  CHECK_MESSAGE(finding.summary.find(verdict.says) != std::string::npos, finding.summary);
  CHECK(finding.subjects.nodes == verdict.blamed);
  std::vector<std::string> evidence;
  for (const auto& [node, fact, observed, expected, context, command] : finding.evidence) {
    evidence.push_back(node + " " + fact + ": " + observed + ", not " + expected + "; " + command);
  }
  CHECK(evidence == verdict.evidence);
  std::vector<std::string> fixes;
  for (const Fix& fix : finding.fix) fixes.push_back(fix_line(fix));
  CHECK(fixes == verdict.fixes);
}

// The same row once more, with names in it that only quotes make harmless.
void check_quoting(const Check& check, const CheckCase& row) {
  World world;
  row.change(world);
  plant_names(world.cluster);
  Judge judge(check.codes);
  check.run({.cluster = world.cluster, .expect = world.expect}, judge);
  for (const Finding& finding : judge.findings()) {
    CHECK(unsafe_commands(finding) == std::vector<std::string>{});
  }
}

}  // namespace

const Check& find_check(std::string_view name) {
  const auto all = all_checks();
  const auto found = std::ranges::find(all, name, &NamedCheck::name);
  REQUIRE_MESSAGE(found != all.end(), "no such check: ", std::string(name));
  return *found->check;
}

void run_cases(std::string_view name, const std::vector<CheckCase>& cases) {
  const Check& check = find_check(name);
  for (const CheckCase& row : cases) {
    const std::string row_name(row.name);
    CAPTURE(row_name);
    World world;
    row.change(world);
    Judge judge(check.codes);
    check.run({.cluster = world.cluster, .expect = world.expect}, judge);

    REQUIRE(judge.findings().size() == row.findings.size());
    for (std::size_t i = 0; i < row.findings.size(); ++i) {
      check_decency(world.cluster, judge.findings()[i]);
      check_verdict(judge.findings()[i], row.findings[i]);
    }
    std::vector<std::string> gaps;
    for (const Gap& gap : judge.gaps()) gaps.push_back(gap.node + " " + gap.fact);
    CHECK(gaps == row.gaps);
    CHECK(judge.skipped().value_or("") == row.skipped);
    check_quoting(check, row);
  }
}

}  // namespace distdoctor::testing
