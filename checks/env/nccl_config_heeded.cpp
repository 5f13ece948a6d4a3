// What stands in NCCL's configuration files counts: the files are there, and nothing goes before
// them.
#include <distdoctor/check.h>

#include "config_lines.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

constexpr std::string_view kInterface = "NCCL_SOCKET_IFNAME";

// --- the same name twice ---

void judge_repeated(const NodeFacts& node, const NcclConfigFile& file, Judge& judge) {
  std::map<std::string_view, const NcclConfigEntry*> first;
  for (const NcclConfigEntry& entry : file.entries) {
    const auto [seen, added] = first.try_emplace(entry.name, &entry);
    if (added || !plain_name(entry.name) || seen->second->value == entry.value) continue;
    Finding finding{.code = "env-nccl-conf-repeated",
                    .severity = Severity::notice,
                    .certainty = Certainty::proved,
                    .symptom = Symptom::slow,
                    .subjects = {.nodes = {node.host}},
                    .summary = fmt::format("{} stands twice in {} on {}, and the first one counts",
                                           entry.name, file.path, node.host)};
    finding.evidence.push_back(
        {.node = node.host,
         .fact = fmt::format("{}:{}", file.path, entry.line),
         .observed = fmt::format("{}, after {} in line {}", entry.value, seen->second->value,
                                 seen->second->line),
         .expected = "one line for a name",
         .context = std::string(slug(node.context)),
         .command = fmt::format("grep -n {} {}", shell_quote(entry.name), shell_quote(file.path))});
    finding.fix = {{.node = node.host,
                    .kind = Fix::Kind::manual,
                    .text = "take out the line that is not meant"}};
    judge.report(std::move(finding));
  }
}

// --- an empty variable in front of a line ---

void judge_shadowed(const Case& c,
                    const Place& place,
                    const NcclConfigFile& file,
                    const NcclConfigEntry& entry,
                    Judge& judge) {
  const Setting& setting = *place.setting;
  const std::string where = fmt::format("{}:{}", file.path, entry.line);
  const bool matters = entry.name == kInterface && c.cluster.job.nccl == Use::yes;
  Finding finding{
      .code = "env-nccl-conf-shadowed",
      .severity = capped_by_origin(place, matters ? Severity::degraded : Severity::notice),
      .certainty = Certainty::proved,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {place.node->host}},
      .summary = fmt::format("{} is set to nothing on {}, so {} does not count", entry.name,
                             place.node->host, where)};
  finding.evidence = {{.node = place.node->host,
                       .fact = entry.name,
                       .observed = fmt::format("empty ({})", origin_text(setting.origin)),
                       .expected = fmt::format("{} of {}, or unset", entry.value, where),
                       .context = std::string(slug(place.node->context)),
                       .command = setting_command(entry.name, setting)}};
  finding.fix = {{.node = place.node->host,
                  .kind = Fix::Kind::env,
                  .env = {{entry.name, std::nullopt}},
                  .text = "unset, not empty"}};
  judge.report(std::move(finding));
}

// --- a file that NCCL does not find ---

void judge_missing(const Case& c,
                   const NodeFacts& node,
                   const Prediction& prediction,
                   const NcclConfigFile& file,
                   Judge& judge) {
  if (!file.named || file.readable) return;
  const Setting* setting = find_setting(prediction, "NCCL_CONF_FILE");
  const bool jobs = setting != nullptr && setting->value == file.path;
  Severity severity =
      jobs ? capped_by_origin({&node, setting}, Severity::degraded) : Severity::notice;
  if (c.cluster.job.nccl != Use::yes || file.there) severity = Severity::notice;
  Finding finding{
      .code = "env-nccl-conf-missing",
      .severity = severity,
      .certainty = file.there ? Certainty::possible : Certainty::likely,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("NCCL_CONF_FILE names {}, which {} on {}; NCCL says nothing about it",
                             file.path, file.there ? "cannot be read" : "is not there", node.host)};
  finding.evidence = {{.node = node.host,
                       .fact = "NCCL_CONF_FILE",
                       .observed = file.path + (file.there ? ", not readable" : ", not there"),
                       .expected = "a file that every rank can read",
                       .context = std::string(slug(node.context)),
                       .command = "ls -l -- " + shell_quote(file.path)}};
  finding.fix = {{.node = node.host,
                  .kind = Fix::Kind::manual,
                  .text = "put the file there, or unset NCCL_CONF_FILE: then ~/.nccl.conf counts"}};
  judge.report(std::move(finding));
}

// --- the check ---

void judge_file(const Case& c,
                const NodeFacts& node,
                const Prediction& prediction,
                const NcclConfigFile& file,
                Judge& judge) {
  judge_missing(c, node, prediction, file, judge);
  judge_repeated(node, file, judge);
  for (const NcclConfigEntry& entry : file.entries) {
    const Setting* setting = find_setting(prediction, entry.name);
    const bool empty = setting != nullptr && setting->value.empty() && !config_line(*setting);
    if (empty && !entry.value.empty()) judge_shadowed(c, {&node, setting}, file, entry, judge);
  }
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  each_config_file(
      c, judge,
      [&](const NodeFacts& node, const Prediction& prediction, const NcclConfigFile& file) {
        judge_file(c, node, prediction, file, judge);
      });
}

// --- the catalogue ---

constexpr std::string_view kVerify = "NCCL_DEBUG=INFO prints the values that were meant.";
constexpr Page kRepeatedPage{
    .meaning = "NCCL heeds the first line of a name, and passes over the later ones.",
    .confirm = "`grep -n NAME FILE`",
    .fix = "Keep one line for each name.",
    .verify = "`cut -d= -f1 FILE | sort | uniq -d` prints nothing."};
constexpr Page kShadowedPage{
    .meaning =
        "The environment goes before NCCL's files, also when a variable is there and empty: "
        "`export NCCL_SOCKET_IFNAME=` blocks the line of /etc/nccl.conf.",
    .confirm = "`env | grep NAME=` in the job prints the name with nothing behind it.",
    .fix = "`unset NAME` where the job is started.",
    .verify = kVerify};
constexpr Page kMissingPage{
    .meaning =
        "NCCL_CONF_FILE names the file that is read instead of ~/.nccl.conf (2.23 and later). "
        "NCCL says nothing where it is not there, and goes on without.",
    .confirm = "`ls -l \"$NCCL_CONF_FILE\"` on the node, in the job's container.",
    .fix = "Put the file where every node and container has it, or unset the variable.",
    .verify = kVerify};
constexpr Code kCodes[] = {{.id = "env-nccl-conf-repeated",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::notice,
                            .title = "A name stands twice in NCCL's config file",
                            .causes = {},
                            .page = kRepeatedPage},
                           {.id = "env-nccl-conf-shadowed",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::degraded,
                            .title = "An empty variable blocks NCCL's config file",
                            .causes = {},
                            .page = kShadowedPage},
                           {.id = "env-nccl-conf-missing",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::degraded,
                            .title = "NCCL_CONF_FILE is not there",
                            .causes = {},
                            .page = kMissingPage}};

}  // namespace

extern const Check env_nccl_config_heeded{
    .title = "NCCL heeds its config files", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
