// The files that NCCL_TOPO_FILE and NCCL_GRAPH_FILE name are there, and are what NCCL reads.
#include <distdoctor/check.h>

#include "unresolved.h"
#include "variables.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// Asked of NCCL 2.28.9's own ncclTopoGetXmlFromFile and ncclTopoGetXmlGraphFromFile.
enum class Trouble : std::uint8_t { none, ignored, fails };

struct Verdict {
  Trouble trouble = Trouble::none;
  std::string seen = {};
  std::string then = {};  // what NCCL does
};

struct Kind {
  const char* variable;
  std::string_view root;  // of its XML
};
constexpr Kind kKinds[] = {{"NCCL_TOPO_FILE", "<system"}, {"NCCL_GRAPH_FILE", "<graphs"}};

constexpr const char* kParseError = "NCCL stops with `XML Parse error`";
constexpr const char* kNoEffect = "NCCL goes on as if it was not set";

// Past comments, which NCCL skips.
std::string_view first_element(std::string_view text) {
  while (text.starts_with("<!--")) {
    const auto end = text.find("-->");
    if (end == std::string_view::npos) return "";
    text.remove_prefix(end + 3);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  return text;
}

bool names_root(std::string_view element, std::string_view root) {
  return element.starts_with(root) && element.size() > root.size() &&
         (element[root.size()] == ' ' || element[root.size()] == '>');
}

// Of a whole opening tag; what lies beyond the first bytes is not judged.
bool other_version(std::string_view element) {
  const auto end = element.find('>');
  return end != std::string_view::npos &&
         element.substr(0, end).find(" version=\"1\"") == std::string_view::npos;
}

Verdict judge_xml(const NamedFile& file, std::string_view root) {
  const std::string_view text = file.begins;
  if (text.starts_with("<?")) {
    return {Trouble::fails, "begins with an XML declaration", kParseError};
  }
  if (!text.starts_with('<')) return {Trouble::fails, "is no XML", kParseError};
  const auto element = first_element(text);
  if (element.empty()) return {};
  if (!names_root(element, root)) {
    const auto name = element.substr(0, element.find_first_of(" \t\r\n>", 1));
    return {Trouble::ignored, fmt::format("begins with {}, not with {}", name, root), kNoEffect};
  }
  if (other_version(element)) {
    return {Trouble::fails, fmt::format("has no version=\"1\" in its {}", root),
            "NCCL stops with `XML ... has wrong version` or `Attribute version ... not found`"};
  }
  return {};
}

Verdict judge_file(const NamedFile& file, const Kind& kind) {
  if (file.error != 0) {
    const bool graph = kind.root == "<graphs";
    const std::string seen = file.error == 2 ? "does not exist"
                             : file.error == 13
                                 ? "cannot be read"
                                 : fmt::format("cannot be opened (errno {})", file.error);
    return {graph ? Trouble::fails : Trouble::ignored, seen,
            graph ? "NCCL stops with `Could not open XML graph file`" : kNoEffect};
  }
  if (file.begins.empty()) return {Trouble::ignored, "is empty, or a folder", kNoEffect};
  return judge_xml(file, kind.root);
}

const NamedFile* find_file(const NodeFacts& node, const InForce& row) {
  const auto& files = node.software->named_files;
  const auto found = std::ranges::find_if(files, [&](const NamedFile& file) {
    return file.variable == row.name && file.path == row.value();
  });
  return found == files.end() ? nullptr : &*found;
}

void report(const Case& c,
            const InForce& row,
            const Verdict& verdict,
            std::vector<Place> places,
            Judge& judge) {
  InForce bad{.name = row.name, .reading = row.reading, .places = std::move(places)};
  const bool fails = verdict.trouble == Trouble::fails;
  // A file that some nodes read and others do not: their ranks see two machines.
  const bool divided = !fails && bad.places.size() < row.places.size();
  const auto severity = fails ? Severity::blocker : divided ? Severity::degraded : Severity::notice;
  Finding finding{.code = "env-topo-file-bad",
                  .severity = capped(c, bad, severity),
                  .certainty = fails ? Certainty::likely : Certainty::possible,
                  .symptom = fails ? Symptom::crash : Symptom::slow,
                  .subjects = {.nodes = hosts_of(bad.places)},
                  .summary = fmt::format("{}: the file {} {}; {}", bad.text(), verdict.seen,
                                         where_text(c, bad.places), verdict.then)};
  for (const Place& place : bad.places) {
    finding.evidence.push_back({.node = place.node->host,
                                .fact = bad.name,
                                .observed = setting_text(*place.setting) + " " + verdict.seen,
                                .expected = "a file that NCCL reads",
                                .context = std::string(slug(place.node->context)),
                                .command = fmt::format("head -c 80 {}", shell_quote(bad.value()))});
  }
  finding.fix = mend(c, bad, std::nullopt,
                     "unless the maker of the machine ships such a file: then name that one");
  judge.report(std::move(finding));
}

void judge_row(const Case& c, const Kind& kind, const InForce& row, Judge& judge) {
  std::map<std::string, std::pair<Verdict, std::vector<Place>>> by_trouble;
  for (const Place& place : row.places) {
    const NodeFacts& node = *place.node;
    if (judge.see(node, "software", node.software) == nullptr) continue;
    const NamedFile* file = find_file(node, row);
    if (file == nullptr) {
      judge.miss({.node = node.host,
                  .fact = "file of " + row.name,
                  .why = {Why::not_collected, "the node itself does not have this setting"}});
      continue;
    }
    const auto verdict = judge_file(*file, kind);
    if (verdict.trouble == Trouble::none) continue;
    auto& [seen, places] = by_trouble[verdict.seen];
    seen = verdict;
    places.push_back(place);
  }
  for (auto& [seen, found] : by_trouble) {
    report(c, row, found.first, std::move(found.second), judge);
  }
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  see_settings(c, judge);
  for (const Kind& kind : kKinds) {
    see_value(c, kind.variable, judge);
    for (const InForce& row : in_force(c, kind.variable)) judge_row(c, kind, row, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "NCCL_TOPO_FILE or NCCL_GRAPH_FILE names a file that is not there, or not what NCCL reads. "
        "A missing topology file NCCL passes over in silence and works out the machine by itself, "
        "which is slow on a virtual machine that hides its PCI layout; a missing graph file stops "
        "it (`Could not open XML graph file`). It reads no full XML: a text that does not begin "
        "with `<`, an XML declaration (`<?xml ...?>`) or a byte order mark stops every rank with "
        "`XML Parse error`, and another root element is ignored.",
    .confirm =
        "`head -c 80 FILE` on each node begins with `<system version=\"1\"` (or `<graphs`). "
        "NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=GRAPH,ENV prints `Loading topology file`.",
    .fix =
        "Unset the variable, or name the file that the maker of the machine ships, at the same "
        "path on all nodes. A right file for one machine: run once with NCCL_TOPO_DUMP_FILE=FILE.",
    .verify = "The job's first collective works, and `XML` is not in its output."};
constexpr Code kCodes[] = {{.id = "env-topo-file-bad",
                            .fault_class = FaultClass::topo_file_bad,
                            .worst = Severity::blocker,
                            .title = "NCCL's topology or graph file is missing or no such file",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check env_topo_file{
    .title = "Topology files that NCCL is told to read are there", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
