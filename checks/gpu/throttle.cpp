// No GPU's clocks are held down by heat or by a failing power supply.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "nvml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// The hardware halves the clocks, or worse, to save itself.
constexpr std::array<std::string_view, 2> kSevere = {"hw thermal", "hw power brake"};
// Why they are lower is not said, or the driver only trims them: one look proves no trouble. The
// power cap is not here: a GPU at work runs into it.
constexpr std::array<std::string_view, 2> kMild = {"hw slowdown", "sw thermal"};

template <std::size_t Size>
bool has_any(const NvmlGpu& gpu, const std::array<std::string_view, Size>& reasons) {
  return std::ranges::any_of(reasons, [&](std::string_view reason) {
    return std::ranges::find(gpu.throttle, reason) != gpu.throttle.end();
  });
}

bool severe(const NvmlGpu& gpu) {
  return has_any(gpu, kSevere);
}

void report(const NodeFacts& node, const std::vector<const NvmlGpu*>& slow, Judge& judge) {
  const bool hard = severe(*slow.front());
  Finding finding{
      .code = "gpu-throttled",
      .severity = hard ? Severity::degraded : Severity::notice,
      .certainty = hard ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("the clocks of {} on {} are held down{}", plural(slow.size(), "GPU"),
                             node.host, hard ? "" : "; one look does not tell for how long")};
  for (const NvmlGpu* gpu : slow) {
    const auto heat = gpu->temperature_c ? fmt::format(" at {} C", *gpu->temperature_c) : "";
    add_row(node,
            {.gpu = gpu,
             .what = "clocks held down by",
             .observed = fmt::format("{}{}", fmt::join(gpu->throttle, ", "), heat),
             .expected = "nothing but the power cap",
             .command = query(*gpu, "PERFORMANCE,TEMPERATURE,POWER")},
            finding);
  }
  finding.fix = {by_hand(
      node, fmt::format("look at fans, air flow, the room's temperature and the power supplies of "
                        "{}; if only one GPU is hot, at its cooler",
                        node.host))};
  judge.report(std::move(finding));
}

void judge_node(const NodeFacts& node, const Nvml& nvml, Judge& judge) {
  const auto hard = gpus_that(nvml, severe);
  const auto mild =
      gpus_that(nvml, [](const NvmlGpu& gpu) { return !severe(gpu) && has_any(gpu, kMild); });
  if (!hard.empty()) report(node, hard, judge);
  if (!mild.empty()) report(node, mild, judge);
}

void run(const Case& c, Judge& judge) {
  each_told(c, judge,
            [&](const NodeFacts& node, const Nvml& nvml) { judge_node(node, nvml, judge); });
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "The hardware holds the clocks of a GPU down, since it is too hot or the power supply asks "
        "for less (power brake). Each step of the job then waits for this GPU. A GPU at work that "
        "runs into its power cap (`SW Power Cap`) is normal and not meant.",
    .confirm =
        "`nvidia-smi -q -d PERFORMANCE` while the job runs: `HW Thermal Slowdown: Active` or `HW "
        "Power Brake Slowdown: Active`; `nvidia-smi dmon -s pcv` over a minute shows for how long.",
    .fix =
        "Mend the cooling or the power supply (`ipmitool sdr` shows both). Until then leave the "
        "node out of jobs that go at the pace of the slowest GPU.",
    .verify = "`nvidia-smi -q -d PERFORMANCE` under load shows `Not Active` for both."};
constexpr Code kCodes[] = {{.id = "gpu-throttled",
                            .fault_class = FaultClass::thermal_throttle,
                            .worst = Severity::degraded,
                            .title = "GPU clocks are held down",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_throttle{.title = "GPU clocks are not held down by heat or power",
                                .codes = kCodes,
                                .run = run,
                                .needs = Needs::gpus};

}  // namespace distdoctor::checks
