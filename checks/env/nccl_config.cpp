// NCCL's configuration files say to NCCL what their writer meant.
#include <distdoctor/check.h>

#include "names_there.h"

#include <tuple>

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

constexpr std::string_view kInterface = "NCCL_SOCKET_IFNAME";

// --- what is wrong with a line ---

struct Line {
  const NodeFacts* node;
  const Prediction* prediction;
  const NcclConfigFile* file;
  const NcclConfigEntry* entry;
  Damage damage;

  [[nodiscard]] std::string name() const { return std::string(bare_name(entry->name)); }
  [[nodiscard]] std::string where() const { return fmt::format("{}:{}", file->path, entry->line); }
  // As it was meant it would name nothing that is there.
  [[nodiscard]] bool idle() const {
    return names_nothing(*node, name(), meant_value(entry->value));
  }
};

// It is this line that NCCL heeds.
bool heeded(const Line& line) {
  const Setting* setting = find_setting(*line.prediction, line.name());
  return setting != nullptr && setting->origin.where == line.where();
}

// Nothing else sets the variable, so a line that is ignored is missed.
bool missed(const Line& line) {
  return find_setting(*line.prediction, line.name()) == nullptr;
}

// Digits are read up to what follows them.
bool harmless(const Line& line) {
  const VariableReading* reading = find_reading(*line.prediction, line.name());
  return line.damage != Damage::name && reading != nullptr && reading->trap == VariableTrap::none;
}

std::optional<Line> line_of(const NodeFacts& node,
                            const Prediction& prediction,
                            const NcclConfigFile& file,
                            const NcclConfigEntry& entry) {
  if (bare_name(entry.name).empty() || entry.value.find("***") != std::string::npos) {
    return std::nullopt;
  }
  Line line{&node, &prediction, &file, &entry, Damage::name};
  if (plain_name(entry.name)) line.damage = value_damage(entry.value);
  const bool counts = line.damage == Damage::name ? missed(line) : heeded(line);
  if (line.damage == Damage::none || !counts || harmless(line)) return std::nullopt;
  return line;
}

// --- how grave ---

Severity of_interface(const Case& c, const Line& line) {
  // A value with such a character in it is the name of no interface.
  const bool unknown = !line.prediction->nccl.known() && line.damage != Damage::name;
  return unknown || interface_is_bad(c, *line.prediction) ? Severity::blocker : Severity::degraded;
}

Severity severity_of(const Case& c, const Line& line) {
  if (c.cluster.job.nccl != Use::yes) return Severity::notice;
  if (line.damage == Damage::name && line.idle()) return Severity::notice;  // nothing is lost
  if (line.name() == kInterface) return of_interface(c, line);
  const VariableReading* reading = find_reading(*line.prediction, line.name());
  if (reading != nullptr && reading->trap == VariableTrap::refused) return Severity::blocker;
  if (reading != nullptr && reading->as_default) return Severity::notice;
  const bool lost = line.damage != Damage::name || steers_traffic(line.name());
  return lost ? Severity::degraded : Severity::notice;
}

// --- findings ---

std::string_view code_of(const Line& line) {
  if (line.name() == kInterface) return "env-nccl-conf-ifname";
  return line.damage == Damage::name ? "env-nccl-conf-ignored" : "env-nccl-conf-value";
}

Fix mended(const Line& line) {
  const std::string& path = line.file->path;
  if (line.damage == Damage::carriage_return && !line.idle()) {
    return {.node = line.node->host,
            .kind = Fix::Kind::shell,
            .command = "sed -i 's/\\r$//' -- " + shell_quote(path),
            .text = "the whole file, which was written on Windows"};
  }
  return mend_line(*line.node, {path, std::to_string(line.entry->line)}, line.name(),
                   line.entry->value);
}

void add_line(const Line& line, Finding& finding) {
  auto& nodes = finding.subjects.nodes;
  if (nodes.empty() || nodes.back() != line.node->host) nodes.push_back(line.node->host);
  finding.evidence.push_back(
      {.node = line.node->host,
       .fact = line.where(),
       .observed = line.entry->name + "=" + line.entry->value,
       .expected = line.idle() ? "no such line: nothing here has the name that is meant"
                               : meant_line(*line.entry),
       .context = std::string(slug(line.node->context)),
       .command =
           fmt::format("sed -n {} {} | cat -A", shell_quote(std::to_string(line.entry->line) + "p"),
                       shell_quote(line.file->path))});
  Fix fix = mended(line);
  if (std::ranges::find(finding.fix, fix) == finding.fix.end()) {
    finding.fix.push_back(std::move(fix));
  }
}

// One finding for a file's lines of one kind, on all nodes that have them.
void judge_lines(const Case& c, const std::vector<Line>& lines, Judge& judge) {
  std::map<std::tuple<std::string_view, std::string, Damage>, std::vector<const Line*>> groups;
  for (const Line& line : lines) {
    groups[{code_of(line), line.file->path, line.damage}].push_back(&line);
  }
  for (const auto& [key, group] : groups) {
    const Line& first = *group.front();
    Finding finding{.code = std::string(code_of(first)),
                    .severity = Severity::notice,
                    .certainty = Certainty::likely,
                    .symptom = first.name() == kInterface ? Symptom::hang : Symptom::slow,
                    .summary = fmt::format("{} in {} is not what it looks like: {}", first.name(),
                                           first.file->path, damage_text(first.damage))};
    for (const Line* line : group) {
      finding.severity = std::max(finding.severity, severity_of(c, *line));
      add_line(*line, finding);
    }
    judge.report(std::move(finding));
  }
}

// --- the check ---

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  std::vector<Line> lines;
  each_config_file(
      c, judge,
      [&](const NodeFacts& node, const Prediction& prediction, const NcclConfigFile& file) {
        std::vector<std::string_view> seen;  // the first line of a name counts
        for (const NcclConfigEntry& entry : file.entries) {
          if (std::ranges::find(seen, entry.name) != seen.end()) continue;
          seen.push_back(entry.name);
          if (const auto line = line_of(node, prediction, file, entry)) lines.push_back(*line);
        }
      });
  judge_lines(c, lines, judge);
}

// --- the catalogue ---

constexpr std::string_view kConfirm =
    "`cat -A ~/.nccl.conf /etc/nccl.conf` shows carriage returns as ^M; NCCL_DEBUG=INFO prints "
    "`NAME set by environment to ...` for each value that NCCL heeds.";
constexpr std::string_view kVerify = "NCCL_DEBUG=INFO prints the values that were meant.";
constexpr std::string_view kGrammar =
    "Lines are NAME=VALUE and nothing else: no `export`, no blanks, no quotes, no comment behind "
    "a value; `#` in the first column begins a comment. `sed -i 's/\\r$//' FILE` takes out "
    "carriage returns.";
constexpr Page kIfnamePage{
    .meaning =
        "NCCL takes each line as it is, and trims nothing: with a carriage return, quotes, blanks "
        "or a comment in it NCCL_SOCKET_IFNAME matches no interface (`no socket interface "
        "found`); with `export` or a blank before it the line is ignored.",
    .confirm = kConfirm,
    .fix = kGrammar,
    .verify = kVerify};
constexpr Page kValuePage{
    .meaning =
        "NCCL takes what stands behind the '=' as it is: carriage return, quotes, blanks and "
        "comment are part of the value, which then names nothing that is there.",
    .confirm = kConfirm,
    .fix = kGrammar,
    .verify = kVerify};
constexpr Page kIgnoredPage{
    .meaning =
        "NCCL takes all that stands before the '=' for the name. With `export`, a blank, or a "
        "byte order mark in it no variable of that name exists, and the line does nothing.",
    .confirm = kConfirm,
    .fix = kGrammar,
    .verify = kVerify};
constexpr std::string_view kIfnameCauses[] = {
    "net-nccl-ifname-no-match", "net-nccl-ifname-loopback", "net-nccl-interface-unreachable"};
constexpr std::string_view kValueCauses[] = {"rdma-hca-no-match", "env-variable-misread",
                                             "env-variable-refused", "env-debug-silenced"};
constexpr Code kCodes[] = {{.id = "env-nccl-conf-ifname",
                            .fault_class = FaultClass::iface_not_exist,
                            .worst = Severity::blocker,
                            .title = "NCCL_SOCKET_IFNAME in a config file is not what it looks",
                            .causes = kIfnameCauses,
                            .page = kIfnamePage},
                           {.id = "env-nccl-conf-value",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::blocker,
                            .title = "A value in NCCL's config file is not what it looks",
                            .causes = kValueCauses,
                            .page = kValuePage},
                           {.id = "env-nccl-conf-ignored",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::degraded,
                            .title = "NCCL ignores a line of its config file",
                            .causes = {},
                            .page = kIgnoredPage}};

}  // namespace

extern const Check env_nccl_config{
    .title = "NCCL's config files say what they mean", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
