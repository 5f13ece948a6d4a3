// PyTorch takes TORCH_DISTRIBUTED_DEBUG; any other text ends the program.
#include <distdoctor/check.h>

#include "set_anywhere.h"
#include "variables.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

constexpr const char* kVariable = "TORCH_DISTRIBUTED_DEBUG";

bool known(std::string_view value) {
  return same_text(value, "OFF") || same_text(value, "INFO") || same_text(value, "DETAIL");
}

void judge_value(const Case& c, const InForce& row, Judge& judge) {
  Severity severity = Severity::notice;
  for (const Place& place : row.places) {
    severity = std::max(severity, capped_by_origin(place, Severity::blocker));
  }
  Finding finding{.code = "env-torch-debug-refused",
                  .severity = severity,
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = hosts_of(row.places)},
                  .summary = fmt::format("{} {}: importing torch.distributed fails with it",
                                         row.text(), where_text(c, row.places))};
  add_evidence(row, "OFF, INFO or DETAIL, or unset", finding);
  finding.fix = mend(c, row, std::nullopt, "or one of OFF, INFO and DETAIL");
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  see_settings(c, judge);
  if (!set_anywhere(c.cluster, "TORCH_DISTRIBUTED_DEBUG"))
    judge.skip("TORCH_DISTRIBUTED_DEBUG is not set");
  for (const InForce& row : in_force(c, kVariable)) {
    if (!known(row.value())) judge_value(c, row, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "PyTorch reads TORCH_DISTRIBUTED_DEBUG when torch.distributed is imported. It knows OFF, "
        "INFO and DETAIL, in any case; anything else, 1, true and an empty text too, raises "
        "`RuntimeError: The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.`",
    .confirm = "`python3 -c 'import torch.distributed'` in the job's environment.",
    .fix = "Unset it, or write OFF, INFO or DETAIL.",
    .verify = "The same command says nothing."};
constexpr Code kCodes[] = {{.id = "env-torch-debug-refused",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::blocker,
                            .title = "PyTorch does not start with this value",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check env_torch_debug{
    .title = "PyTorch knows the value of its debug switch", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
