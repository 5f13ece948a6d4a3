// NCCL's debug output is set so that it prints, and so that ranks do not overwrite each other's.
#include <distdoctor/check.h>

#include "variables.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

constexpr const char* kLevel = "NCCL_DEBUG";
constexpr const char* kFile = "NCCL_DEBUG_FILE";

// --- nothing is printed ---

void judge_silence(const Case& c, const InForce& row, Judge& judge) {
  const bool level = row.name == kLevel;
  Finding finding{
      .code = "env-debug-silenced",
      .severity = Severity::notice,
      .certainty = Certainty::proved,
      .symptom = Symptom::crash,
      .subjects = {.nodes = hosts_of(row.places)},
      .summary = fmt::format("{} {}: NCCL knows no such {} and prints nothing, not even warnings",
                             row.text(), where_text(c, row.places), level ? "level" : "subsystem")};
  add_evidence(row, level ? "VERSION, WARN, INFO, ABORT or TRACE" : "INIT,BOOTSTRAP,ENV,NET, ...",
               finding);
  finding.fix = mend(c, row, level ? "INFO" : "INIT,BOOTSTRAP,ENV,NET",
                     "what NCCL says is the first thing to read when a job fails");
  judge.report(std::move(finding));
}

// --- one file for several processes ---

bool prints(const Prediction& prediction) {
  const VariableReading* level = find_reading(prediction, kLevel);
  return level != nullptr && !level->taken_as.empty() && level->taken_as != "VERSION";
}

bool several_ranks(const Case& c, const NodeFacts& node) {
  if (c.cluster.job.ranks_per_node) return *c.cluster.job.ranks_per_node > 1;
  if (!node.processes.known()) return false;
  return std::ranges::count_if(*node.processes, [](const TrainingProcess& process) {
           return process.role == ProcessRole::worker && variable(process, kFile);
         }) > 1;
}

// NCCL opens it anew for each process; a terminal or a pipe takes them all.
bool one_for_all(const std::string& path) {
  return !path.empty() && path.find("%p") == std::string::npos && !path.starts_with("/dev/") &&
         !path.starts_with("/proc/");
}

void judge_file(const Case& c, InForce row, Judge& judge) {
  if (!one_for_all(row.value())) return;
  std::erase_if(row.places, [&](const Place& place) {
    const Prediction* prediction = find_prediction(c.cluster, place.node->host);
    return !prints(*prediction) || !several_ranks(c, *place.node);
  });
  if (row.places.empty()) return;
  Finding finding{.code = "env-debug-file-shared",
                  .severity = Severity::notice,
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = hosts_of(row.places)},
                  .summary = fmt::format("{} {}: the ranks of a node overwrite each other's output",
                                         row.text(), where_text(c, row.places))};
  add_evidence(row, "%h and %p in it: host and process", finding);
  finding.fix = {{.node = "*",
                  .kind = Fix::Kind::env,
                  .env = {{kFile, row.value() + ".%h.%p"}},
                  .text = "one file for each process"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  see_settings(c, judge);
  const auto silenced = [](VariableTrap trap) { return trap == VariableTrap::silenced; };
  for (const InForce& row : with_trap(c, silenced)) judge_silence(c, row, judge);
  for (InForce& row : in_force(c, kFile)) judge_file(c, std::move(row), judge);
}

// --- the catalogue ---

constexpr Page kSilencedPage{
    .meaning =
        "NCCL_DEBUG knows VERSION, WARN, INFO, ABORT and TRACE, in any case; after any other text "
        "it prints nothing at all. So it does when NCCL_DEBUG_SUBSYS is empty or holds only words "
        "that it does not know: then even warnings are lost.",
    .confirm = "The output of the job has no line with `NCCL WARN` or `NCCL INFO`.",
    .fix = "NCCL_DEBUG=WARN or INFO; unset NCCL_DEBUG_SUBSYS, or name INIT,BOOTSTRAP,ENV,NET.",
    .verify = "With NCCL_DEBUG=INFO each rank prints `Bootstrap: Using ...`."};
constexpr Page kFilePage{
    .meaning =
        "Each process opens NCCL_DEBUG_FILE for itself and cuts it to nothing. Without %p in its "
        "name the ranks of a node write over one another, and the one line that matters is lost.",
    .confirm = "`grep -c 'Init START' FILE` counts fewer ranks than the node has.",
    .fix = "NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log",
    .verify = "There are as many files as ranks."};
constexpr Code kCodes[] = {{.id = "env-debug-silenced",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::notice,
                            .title = "NCCL's warnings are switched off",
                            .causes = {},
                            .page = kSilencedPage},
                           {.id = "env-debug-file-shared",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::notice,
                            .title = "Ranks overwrite each other's debug output",
                            .causes = {},
                            .page = kFilePage}};

}  // namespace

extern const Check env_debug_output{
    .title = "NCCL's debug output is not lost", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
