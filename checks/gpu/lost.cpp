// Each GPU that the driver counts answers it.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// What a device cgroup or a setting keeps from us says nothing of the GPU.
bool is_lost(const NvmlGpu& gpu) {
  constexpr std::array<std::string_view, 4> kOurs = {"", "insufficient permissions",
                                                     "not supported", "not found"};
  return std::ranges::find(kOurs, gpu.error) == kOurs.end();
}

bool needs_reset_only(const NvmlGpu& gpu) {
  return gpu.error == "GPU requires reset";
}

Fix bring_back(const NodeFacts& node, const std::vector<const NvmlGpu*>& lost) {
  if (std::ranges::all_of(lost, [](const NvmlGpu* gpu) { return needs_reset_only(*gpu); })) {
    return by_hand(node, fmt::format("drain {}, then reset the GPU (`nvidia-smi --gpu-reset -i {}` "
                                     "as root, with no process on it), or reboot",
                                     node.host, shell_quote(handle_of(*lost.front()))));
  }
  return by_hand(node, fmt::format("take {} out of the job and reboot it or take it off the power; "
                                   "`dmesg -T | grep -iE 'nvrm|xid'` says why",
                                   node.host));
}

void judge_node(const Case& c, const NodeFacts& node, const Nvml& nvml, Judge& judge) {
  const auto lost = gpus_that(nvml, is_lost);
  if (lost.empty()) return;
  const bool in_the_way = too_few_for_ranks(c.cluster.job, nvml.gpus.size() - lost.size());
  Finding finding{.code = "gpu-lost",
                  .severity = capped_by_nccl(c.cluster.job,
                                             in_the_way ? Severity::blocker : Severity::degraded),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} of {} on {} no longer answer the driver", lost.size(),
                                         plural(nvml.gpus.size(), "GPU"), node.host)};
  for (const NvmlGpu* gpu : lost) {
    add_row(node,
            {.gpu = gpu,
             .what = "asked by the driver",
             .observed = gpu->error,
             .expected = "an answer",
             .command = fmt::format("nvidia-smi -i {}", shell_quote(handle_of(*gpu)))},
            finding);
  }
  finding.fix = {bring_back(node, lost)};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  each_told(c, judge,
            [&](const NodeFacts& node, const Nvml& nvml) { judge_node(c, node, nvml, judge); });
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "The driver knows the GPU but gets no answer from it: `GPU is lost` when it has fallen off "
        "the bus, `GPU requires reset` after a fault. Programs on it fail, and often "
        "cudaGetDeviceCount fails for the whole node.",
    .confirm =
        "`nvidia-smi` prints `Unable to determine the device handle for GPU ...`; `dmesg -T | grep "
        "-i xid` shows 79 or another fault.",
    .fix =
        "Reset the GPU where that is all it needs, else reboot the node or take it off the power. "
        "If it happens again: seat, power cables, temperature, then the vendor.",
    .verify = "`nvidia-smi -L` lists all GPUs without an error."};
constexpr std::string_view kFewer[] = {"gpu-count-differs", "gpu-fewer-than-expected",
                                       "gpu-missing", "gpu-too-few"};
constexpr Code kCodes[] = {{.id = "gpu-lost",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::blocker,
                            .title = "A GPU does not answer its driver",
                            .causes = kFewer,
                            .page = kPage}};

}  // namespace

extern const Check gpu_lost{
    .title = "All GPUs answer their driver", .codes = kCodes, .run = run, .needs = Needs::gpus};

}  // namespace distdoctor::checks
