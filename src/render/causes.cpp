#include "render/causes.h"

#include "base/text.h"
#include "render/exported.h"

#include <algorithm>
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

void head(std::size_t place, const Finding& finding, const Style& style, std::ostream& out) {
  const CheckResult result = as_result(finding.severity);
  out << place << ". " << style.symbol(result) << ' ' << style.by_result(result, finding.code)
      << style.dim("  [" + std::string(slug(finding.severity)) + ", " +
                   std::string(slug(finding.certainty)) +
                   ", symptom: " + std::string(slug(finding.symptom)) + "]")
      << '\n';
}

void in_full(std::size_t place, const Cause& cause, const Style& style, std::ostream& out) {
  const Finding& finding = cause.finding;
  head(place, finding, style, out);
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

// --- the same on another node ---

// What is said of a node, with its name left out.
std::string nameless(std::string text, const std::string& host) {
  for (auto at = text.find(host); at != std::string::npos; at = text.find(host, at + 1)) {
    text.replace(at, host.size(), 1, '\0');
  }
  return text;
}

bool about_one_node(const Finding& finding) {
  const Subjects& about = finding.subjects;
  return about.nodes.size() == 1 && !about.nodes.front().empty() && about.pairs.empty();
}

// What was observed may differ: the summary says it.
std::vector<std::string> said_of(const Finding& finding) {
  const std::string& host = finding.subjects.nodes.front();
  std::vector<std::string> words;
  for (const Evidence& row : finding.evidence) {
    for (const std::string* text :
         {&row.node, &row.fact, &row.expected, &row.context, &row.command})
      words.push_back(nameless(*text, host));
  }
  for (const Fix& fix : finding.fix) {
    words.push_back(std::string(slug(fix.kind)));
    for (const std::string* text : {&fix.node, &fix.command, &fix.text})
      words.push_back(nameless(*text, host));
    for (const auto& [name, value] : fix.env) words.push_back(name + "=" + value.value_or("\n"));
  }
  return words;
}

bool same_on_another_node(const Cause& above, const Cause& cause) {
  const Finding& a = above.finding;
  const Finding& b = cause.finding;
  if (!about_one_node(a) || !about_one_node(b) || a.subjects.nodes == b.subjects.nodes)
    return false;
  return a.code == b.code && a.severity == b.severity && a.certainty == b.certainty &&
         a.symptom == b.symptom && cause.explains.empty() && cause.also_explains.empty() &&
         said_of(a) == said_of(b);
}

void in_short(std::size_t place,
              std::size_t above,
              const Cause& cause,
              const Style& style,
              std::ostream& out) {
  const Finding& finding = cause.finding;
  head(place, finding, style, out);
  out << wrapped(printable(finding.summary), 3, style.width());
  out << wrapped("Evidence and fix as under " + std::to_string(above) + ", on " +
                     printable(finding.subjects.nodes.front()) + " (-v shows all)",
                 3, style.width())
      << '\n';
}

}  // namespace

void causes(const std::vector<Cause>& causes, const Style& style, std::ostream& out) {
  for (std::size_t i = 0; i < causes.size(); ++i) {
    const auto* const end = causes.data() + i;
    const auto* const above = std::find_if(causes.data(), end, [&](const Cause& before) {
      return same_on_another_node(before, causes[i]);
    });
    if (above == end || style.verbose()) {
      in_full(i + 1, causes[i], style, out);
    } else {
      in_short(i + 1, static_cast<std::size_t>(above - causes.data()) + 1, causes[i], style, out);
    }
  }
}

}  // namespace distdoctor::render
