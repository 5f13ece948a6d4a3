// NCCL chooses its algorithm and protocol itself.
#include <distdoctor/check.h>

#include "variables.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

bool forces(const InForce& row) {
  const std::string& value = row.taken();
  return !value.empty() && value.find('^') == std::string::npos;
}

// LL128 needs 128-byte stores that arrive whole, which NVLink promises and PCIe does not.
bool forces_ll128(const InForce& row) {
  return row.name == "NCCL_PROTO" && forces(row) && [&] {
    std::string_view rest = row.taken();
    constexpr std::string_view kWord = "LL128";
    for (; rest.size() >= kWord.size(); rest.remove_prefix(1)) {
      if (same_text(rest.substr(0, kWord.size()), kWord)) return true;
    }
    return false;
  }();
}

void judge_forced(const Case& c, InForce row, Judge& judge) {
  std::erase_if(row.places, [&](const Place& place) { return follows_a_recipe(c, place); });
  if (row.places.empty() || !forces(row)) return;
  const bool unsafe = forces_ll128(row);
  Finding finding{
      .code = "env-algorithm-forced",
      .severity = Severity::notice,
      .certainty = Certainty::likely,
      .symptom = unsafe ? Symptom::wrong_result : Symptom::slow,
      .subjects = {.nodes = hosts_of(row.places)},
      .summary = fmt::format("{} {}: {}", row.text(), where_text(c, row.places),
                             unsafe ? "forced where the hardware does not support it, LL128 "
                                      "corrupts data silently"
                                    : "one choice for all sizes of messages is slow for some")};
  add_evidence(row, "unset: NCCL chooses by size, topology and hardware", finding);
  finding.fix = mend(c, row, std::nullopt, "keep it only where it was measured to be better");
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  see_settings(c, judge);
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
    for (InForce& row : in_force(c, name)) judge_forced(c, std::move(row), judge);
  }
}

constexpr std::string_view kConfirm =
    "`env | grep -E '^(NCCL|CUDA|TORCH)_'` in the job, `cat ~/.nccl.conf /etc/nccl.conf`.";
constexpr Page kForcedPage{
    .meaning =
        "NCCL_ALGO and NCCL_PROTO take NCCL's choice away for all sizes and all collectives. "
        "LL128 relies on stores of 128 bytes that arrive whole; where the hardware does not "
        "promise that NCCL leaves it out by itself, but not when it is told to use it.",
    .confirm = kConfirm,
    .fix = "Unset both, and measure with nccl-tests over all sizes.",
    .verify = "all_reduce_perf is as fast or faster without them, and counts no wrong values."};
constexpr Code kCodes[] = {{.id = "env-algorithm-forced",
                            .fault_class = FaultClass::nccl_algo_env,
                            .worst = Severity::notice,
                            .title = "NCCL's algorithm or protocol is forced",
                            .causes = {},
                            .page = kForcedPage}};

}  // namespace

extern const Check env_algorithm_forced{
    .title = "NCCL chooses its algorithms itself", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
