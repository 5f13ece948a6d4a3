#include "base/text.h"

#include <distdoctor/areas.h>
#include <distdoctor/quote.h>

#include "base/units.h"
#include "render/causes.h"
#include "render/render.h"
#include "render/runs.h"
#include "render/style.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::render {
namespace {

void header(const Report& report, const Style& style, std::ostream& out) {
  const auto& nodes = report.diagnosis.nodes;
  const auto reached = std::ranges::count(nodes, true, &NodeLine::reached);
  out << style.bold("distdoctor " + std::string(report.command)) << ": " << reached << " of "
      << nodes.size() << (nodes.size() == 1 ? " node" : " nodes") << " reached\n";
  for (const NodeLine& node : nodes) {
    if (node.reached) continue;
    out << "  " << style.symbol(CheckResult::unknown) << ' '
        << wrapped(printable(node.host) + " was not reached: " + printable(node.why), 0,
                   style.width());
  }
}

void settings(const Report& report, const Style& style, std::ostream& out) {
  const JobSpec& job = report.cluster.job;
  for (const char* name :
       {"MASTER_ADDR", "MASTER_PORT", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const auto setting = job.settings.find(name);
    if (setting == job.settings.end()) continue;
    const Origin& origin = setting->second.origin;
    const std::string source(slug(origin.source));
    std::string line = std::string(name) + "=" + printable(setting->second.value) + "  (";
    if (!origin.where.starts_with(source)) line += source + (origin.where.empty() ? "" : ", ");
    line += printable(origin.where);
    if (!origin.node.empty()) line += " on " + printable(origin.node);
    out << "  " << style.dim(line + ")") << '\n';
  }
}

void check_line(const CheckLine& line, const Style& style, std::ostream& out) {
  out << "  " << style.symbol(line.result) << ' ' << line.title << '\n';
  if (line.result == CheckResult::pass || line.detail.empty()) return;
  out << wrapped(printable(line.detail), 6, style.width());
}

// "3 checks pass", "2 could not be made"; each line on its own with -v.
void summary_line(const std::vector<const CheckLine*>& lines,
                  CheckResult result,
                  std::string_view what,
                  const Style& style,
                  std::ostream& out) {
  const auto count = std::ranges::count(lines, result, &CheckLine::result);
  if (count == 0) return;
  out << "  " << style.symbol(result) << ' ' << count << (count == 1 ? " check " : " checks ")
      << what << '\n';
}

void module(std::string_view area, const Report& report, const Style& style, std::ostream& out) {
  std::vector<const CheckLine*> lines;
  for (const CheckLine& line : report.diagnosis.checks) {
    if (area_of(line.name) == area) lines.push_back(&line);
  }
  if (lines.empty()) return;
  out << style.bold(area) << '\n';
  for (const CheckLine* line : lines) {
    const bool quiet = line->result == CheckResult::pass || line->result == CheckResult::unknown ||
                       line->result == CheckResult::skipped;
    if (style.verbose() || !quiet) check_line(*line, style, out);
  }
  if (style.verbose()) return;
  summary_line(lines, CheckResult::pass, "passed", style, out);
  summary_line(lines, CheckResult::unknown, "without an answer", style, out);
  summary_line(lines, CheckResult::skipped, "had nothing to look at", style, out);
}

void diagnosis(const Report& report, const Style& style, std::ostream& out) {
  if (report.diagnosis.causes.empty()) return;
  out << '\n' << style.heading("Diagnosis") << "\n\n";
  causes(report.diagnosis.causes, style, out);
}

std::string count_of(const Diagnosis& diagnosis, Severity severity) {
  const auto count = std::ranges::count_if(
      diagnosis.causes, [&](const Cause& cause) { return cause.finding.severity == severity; });
  if (count == 0) return "";
  const std::string name(slug(severity));
  if (severity == Severity::degraded) return std::to_string(count) + " degraded";
  return std::to_string(count) + " " + name + (count == 1 ? "" : "s");
}

void verdict(const Report& report, const Style& style, std::ostream& out) {
  const Diagnosis& d = report.diagnosis;
  std::vector<std::string> counts;
  for (const Severity severity : {Severity::blocker, Severity::degraded, Severity::notice}) {
    std::string count = count_of(d, severity);
    if (!count.empty()) counts.push_back(std::move(count));
  }
  std::string line = "Verdict: " + std::string(slug(d.verdict));
  if (!counts.empty()) line += " (" + join(counts, ", ") + ")";
  const auto took = std::chrono::duration<double>(report.elapsed_s);
  line += " after " + human_duration(std::chrono::duration_cast<std::chrono::nanoseconds>(took));
  if (d.interrupted) line += "; cut short by Ctrl-C or the budget, so this is a part only";
  constexpr std::array kResults = {CheckResult::pass, CheckResult::blocker, CheckResult::unknown};
  out << style.by_result(kResults.at(static_cast<std::size_t>(d.verdict)), line) << '\n';
}

std::string gap_line(const MergedGap& gap) {
  std::string line = printable(gap.fact);
  if (gap.nodes.size() == 1) line += " on " + printable(gap.nodes.front());
  if (gap.nodes.size() > 1) line += " on " + std::to_string(gap.nodes.size()) + " nodes";
  return gap.why.text.empty() ? line + " (" + std::string(slug(gap.why.kind)) + ")"
                              : line + " (" + printable(gap.why.text) + ")";
}

void not_checked(const Report& report, const Style& style, std::ostream& out) {
  const auto& gaps = report.diagnosis.gaps;
  if (gaps.empty()) {
    out << "Not checked: "
        << (report.selected ? "what --only and --skip leave out" : "nothing was left out") << '\n';
    return;
  }
  constexpr std::size_t kMost = 4;
  std::vector<std::string> lines;
  for (const MergedGap& gap : gaps) {
    if (lines.size() == kMost && !style.verbose()) break;
    lines.push_back(gap_line(gap));
  }
  std::string line = "Not checked: " + join(lines, "; ");
  if (gaps.size() > lines.size()) {
    line += "; and " + std::to_string(gaps.size() - lines.size()) + " more (-v shows all)";
  }
  out << wrapped(line, 0, style.width());
}

// All is well, as far as `check` looks; what it did not try is the collective itself.
void hint(const Report& report, const Style& style, std::ostream& out) {
  const Diagnosis& d = report.diagnosis;
  const bool nothing = d.verdict == Verdict::healthy && d.causes.empty();
  if (report.command != "check" || !nothing || !report.cluster.experiments.empty()) return;
  std::vector<std::string> hosts;
  for (const NodeLine& node : d.nodes) hosts.push_back(shell_quote(printable(node.host)));
  const std::string peers = hosts.size() < 2 ? "" : " --peers " + join(hosts, ",");
  out << wrapped(
      "It is slow or hangs all the same? distdoctor bisect" + peers + " runs tiny all-reduces", 0,
      style.width());
}

}  // namespace

void text(const Report& report, const TextOptions& options, std::ostream& out) {
  const Style style(options);
  header(report, style, out);
  settings(report, style, out);
  out << '\n';
  for (const std::string_view area : kAreas) module(area, report, style, out);
  runs(report.cluster.experiments, style, out);
  wires(report.cluster.pairs, style, out);
  diagnosis(report, style, out);
  if (report.diagnosis.causes.empty()) out << '\n';
  verdict(report, style, out);
  not_checked(report, style, out);
  hint(report, style, out);
}

}  // namespace distdoctor::render
