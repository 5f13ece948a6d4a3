// NCCL's own choices, and what the job has set of them, do no harm.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/setting_text.h>

#include "isolations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

// --- what the job has set ---

void add_settings(const Case& c, const Isolation& found, Finding& finding) {
  for (const NodeFacts& node : c.cluster.nodes) {
    const Prediction* prediction = find_prediction(c.cluster, node.host);
    if (prediction == nullptr) continue;
    for (const std::string& name : found.names) {
      const Setting* setting = find_setting(*prediction, name);
      if (setting == nullptr) continue;
      finding.evidence.push_back({.node = node.host,
                                  .fact = name,
                                  .observed = setting_text(*setting),
                                  .expected = "unset",
                                  .context = std::string(slug(node.context)),
                                  .command = setting_command(name, *setting)});
    }
  }
}

void report_own(const Case& c, const Isolation& found, Judge& judge) {
  const char* code =
      is_slow(found) ? "collective-own-switch-slows" : "collective-own-switch-breaks";
  Finding finding = about(
      c, found, code,
      fmt::format("with {} the collective {}; without, it {}{}", fmt::join(found.names, ", "),
                  ailment_text(found), is_slow(found) ? "is faster" : "works", speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  add_settings(c, found, finding);
  add_workaround(found, "out of the job's environment and of NCCL's config files", finding);
  judge.report(std::move(finding));
}

// --- what NCCL chooses ---

struct Kind {
  Layer layer;
  std::string_view what;
  std::string_view cost;
};

constexpr std::array<Kind, 4> kKinds = {
    {{Layer::algorithm, "an algorithm that NCCL chooses by itself",
      "trees and NVLS are faster for small messages and many nodes"},
     {Layer::protocol, "a protocol that NCCL chooses by itself (LL, LL128)",
      "small messages take longer"},
     {Layer::tuner, "the tuner plugin", "NCCL's own choices instead of the plugin's"},
     {Layer::cumem, "memory that GPUs share by cuMem",
      "legacy IPC instead; user buffers cannot be registered, and no NVLS"}}};

void report(const Case& c, const Kind& kind, const Isolation& found, Judge& judge) {
  Finding finding = about(c, found, "collective-choice",
                          fmt::format("{}{} {}{}", kind.what, where_text(found),
                                      ailment_text(found), speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  add_workaround(found, std::string(kind.cost), finding);
  finding.fix.push_back(by_hand("*", "for good: a newer NCCL (and plugin), the same on all nodes"));
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Isolation* found : isolations_of(c, {Layer::settings})) {
    if (!found->names.empty()) report_own(c, *found, judge);
  }
  for (const Kind& kind : kKinds) {
    for (const Isolation* found : isolations_of(c, {kind.layer})) report(c, kind, *found, judge);
  }
}

// --- the catalogue ---

constexpr std::string_view kConfirm = "all_reduce_perf of nccl-tests with and without it.";
constexpr Page kBreaksPage{
    .meaning =
        "A variable that the job has set keeps the collective from working: without it the same "
        "all-reduce works. Both were run twice.",
    .confirm = kConfirm,
    .fix = "Unset it where it was set: the launch script, ~/.nccl.conf, /etc/nccl.conf.",
    .verify = "The job runs without it."};
constexpr Page kSlowsPage{
    .meaning =
        "A variable that the job has set slows the collective: without it the same all-reduce is "
        "faster. Both were run twice.",
    .confirm = kConfirm,
    .fix = "Unset it where it was set, unless there is a reason that is worth the speed.",
    .verify = "The all-reduce is faster without it."};
constexpr Page kChoicePage{
    .meaning =
        "With one of NCCL's own choices switched off (an algorithm, a protocol, the tuner plugin, "
        "cuMem) the same all-reduce works, or is faster. Both were run twice. That is a fault of "
        "this version, or of what it meets on this machine.",
    .confirm = kConfirm,
    .fix = "A newer NCCL; the switch until then.",
    .verify = "The all-reduce works without the switch."};
constexpr Code kCodes[] = {{.id = "collective-own-switch-breaks",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::blocker,
                            .title = "A setting of the job's breaks the collective",
                            .causes = {},
                            .page = kBreaksPage},
                           {.id = "collective-own-switch-slows",
                            .fault_class = FaultClass::toggle_left_set,
                            .worst = Severity::degraded,
                            .title = "A setting of the job's slows the collective",
                            .causes = {},
                            .page = kSlowsPage},
                           {.id = "collective-choice",
                            .fault_class = FaultClass::nccl_bug,
                            .worst = Severity::blocker,
                            .title = "A choice of NCCL's own does harm",
                            .causes = {},
                            .page = kChoicePage}};

}  // namespace

extern const Check collective_tuning{.title = "No setting and no choice does harm",
                                     .codes = kCodes,
                                     .run = run,
                                     .needs = Needs::runs};

}  // namespace distdoctor::checks
