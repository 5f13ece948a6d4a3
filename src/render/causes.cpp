#include "render/causes.h"

#include "base/text.h"
#include "render/exported.h"

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::render {
namespace {

constexpr std::size_t kMostEvidence = 6;  // a person reads no more; JSON and -v have all of it

std::string whom(const Subjects& subjects) {
  std::vector<std::string> names = subjects.nodes;
  for (const auto& [from, to] : subjects.pairs) names.push_back(from + " -> " + to);
  for (const std::string& device : subjects.devices) names.push_back(device);
  for (const int rank : subjects.ranks) names.push_back("rank " + std::to_string(rank));
  if (names.size() > 8) {
    const std::size_t more = names.size() - 7;
    names.resize(7);
    names.push_back(std::to_string(more) + " more");
  }
  return join(names, ", ");
}

void evidence_row(const Evidence& row, const Style& style, std::ostream& out) {
  std::string line = row.node.empty() ? "" : printable(row.node) + ": ";
  line += printable(row.fact) + " is " + printable(row.observed);
  if (!row.expected.empty()) line += ", expected " + printable(row.expected);
  if (!row.context.empty()) line += " (seen in: " + printable(row.context) + ")";
  out << wrapped(line, 6, style.width());
  if (!row.command.empty()) out << "        " << style.dim("$ " + printable(row.command)) << '\n';
}

void evidence(const Finding& finding, const Style& style, std::ostream& out) {
  if (finding.evidence.empty()) return;
  out << "   Evidence\n";
  std::size_t shown = 0;
  for (const Evidence& row : finding.evidence) {
    if (shown++ == kMostEvidence && !style.verbose()) break;
    evidence_row(row, style, out);
  }
  if (finding.evidence.size() > kMostEvidence && !style.verbose()) {
    out << "      and " << finding.evidence.size() - kMostEvidence << " more (-v shows all)\n";
  }
}

std::string where(const Fix& fix) {
  if (fix.kind == Fix::Kind::env) {
    return fix.node == "*" ? "in the job's environment, on every node"
                           : "in the job's environment on " + printable(fix.node);
  }
  return fix.node == "*" ? "on every node" : "on " + printable(fix.node);
}

void fix_step(const Fix& fix, const Style& style, std::ostream& out) {
  std::string head = where(fix);
  if (!fix.text.empty()) head += ": " + printable(fix.text);
  out << wrapped(head, 6, style.width());
  if (!fix.command.empty()) {
    for (const std::string_view line : split_lines(fix.command)) {
      out << "        " << style.bold(printable(line)) << '\n';
    }
  }
  for (const auto& [name, value] : fix.env) {
    const std::string line = value ? exported(name, *value) : "unset " + printable(name);
    out << "        " << style.bold(line) << '\n';
  }
}

void fixes(const Finding& finding, const Style& style, std::ostream& out) {
  if (finding.fix.empty()) return;
  out << "   Fix\n";
  for (const Fix& fix : finding.fix) fix_step(fix, style, out);
}

void consequences(const Cause& cause, const Style& style, std::ostream& out) {
  if (!cause.explains.empty()) {
    out << "   Explains\n";
    for (const Cause& nested : cause.explains) {
      out << wrapped(nested.finding.code + ": " + printable(nested.finding.summary), 6,
                     style.width());
    }
  }
  if (!cause.also_explains.empty()) {
    out << wrapped("Would also explain: " + join(cause.also_explains, ", "), 3, style.width());
  }
}

}  // namespace

void cause(std::size_t place, const Cause& cause, const Style& style, std::ostream& out) {
  const Finding& finding = cause.finding;
  const CheckResult result = as_result(finding.severity);
  out << place << ". " << style.symbol(result) << ' ' << style.by_result(result, finding.code)
      << style.dim("  [" + std::string(slug(finding.severity)) + ", " +
                   std::string(slug(finding.certainty)) +
                   ", symptom: " + std::string(slug(finding.symptom)) + "]")
      << '\n';
  out << wrapped(printable(cause.title), 3, style.width());
  out << wrapped(printable(finding.summary), 3, style.width());
  const std::string names = whom(finding.subjects);
  if (!names.empty()) out << wrapped("About: " + printable(names), 3, style.width());
  evidence(finding, style, out);
  fixes(finding, style, out);
  consequences(cause, style, out);
  out << wrapped("Ranked here: " + printable(cause.because), 3, style.width());
  out << "   " << style.dim("distdoctor explain " + finding.code) << "\n\n";
}

}  // namespace distdoctor::render
