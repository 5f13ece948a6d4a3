// No GPU has memory that is broken or waits to be repaired.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "nvml.h"

#include <fmt/format.h>

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// The spare rows of its memory are used up, or the repair failed.
bool beyond_repair(const NvmlGpu& gpu) {
  return gpu.remap_failed == true;
}

// A row since Ampere, a page before: taken out of use at the next reset.
bool waits_for_reset(const NvmlGpu& gpu) {
  return !beyond_repair(gpu) && (gpu.remap_pending == true || gpu.retire_pending == true);
}

// They ended the program that met them, and nothing waits any more.
bool had_errors(const NvmlGpu& gpu) {
  return !beyond_repair(gpu) && !waits_for_reset(gpu) && gpu.ecc_uncorrected.value_or(0) > 0;
}

std::string errors_text(const NvmlGpu& gpu) {
  const auto now = gpu.ecc_uncorrected.value_or(0);
  const auto ever = gpu.ecc_uncorrected_ever.value_or(0);
  return fmt::format("{} uncorrected errors since the driver was loaded, {} ever", now, ever);
}

struct Kind {
  std::string_view code;
  Severity severity;
  bool (*has)(const NvmlGpu&);
  std::string_view what;
  std::string_view expected;
  std::string_view summary;  // "2 GPUs on node1 ..."
  std::string_view fix;
};

constexpr Kind kKinds[] = {
    {.code = "gpu-memory-broken",
     .severity = Severity::degraded,
     .has = beyond_repair,
     .what = "row remapping",
     .expected = "no failure",
     .summary = "could not replace a broken row of memory",
     .fix = "drain the node and have the GPU replaced: a failed row remapping qualifies it for an "
            "RMA, "
            "after NVIDIA's field diagnostic has confirmed it"},
    {.code = "gpu-memory-repair-pending",
     .severity = Severity::degraded,
     .has = waits_for_reset,
     .what = "memory repair",
     .expected = "nothing pending",
     .summary = "noted broken memory that is replaced only by a reset",
     .fix =
         "drain the node, then reset the GPU (`nvidia-smi --gpu-reset -i ADDRESS` as root, with no "
         "process on it; with NVSwitches all GPUs of the node together), or reboot"},
    {.code = "gpu-memory-errors",
     .severity = Severity::notice,
     .has = had_errors,
     .what = "memory errors",
     .expected = "none",
     .summary = "met uncorrectable memory errors since the driver was loaded",
     .fix = "if a program failed on this GPU, that is why; nothing waits for a repair, but "
            "errors that come back are the vendor's to look at"}};

void report(
    const Case& c, const NodeFacts& node, const Nvml& nvml, const Kind& kind, Judge& judge) {
  const auto ill = gpus_that(nvml, kind.has);
  if (ill.empty()) return;
  const bool notice = kind.severity == Severity::notice;
  Finding finding{
      .code = std::string(kind.code),
      .severity = capped_by_nccl(c.cluster.job, kind.severity),
      .certainty = notice ? Certainty::possible : Certainty::likely,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("{} on {} {}", plural(ill.size(), "GPU"), node.host, kind.summary)};
  for (const NvmlGpu* gpu : ill) {
    const std::string state = beyond_repair(*gpu)     ? "failed; "
                              : waits_for_reset(*gpu) ? "pending; "
                                                      : "";
    add_row(node,
            {.gpu = gpu,
             .what = kind.what,
             .observed = state + errors_text(*gpu),
             .expected = std::string(kind.expected),
             .command = query(*gpu, "ECC,ROW_REMAPPER,PAGE_RETIREMENT")},
            finding);
  }
  finding.fix = {by_hand(node, std::string(kind.fix))};
  judge.report(std::move(finding));
}

// Cards for desktops count none.
bool counts_errors(const NvmlGpu& gpu) {
  return gpu.ecc_uncorrected || gpu.remap_pending || gpu.remap_failed || gpu.retire_pending;
}

void run(const Case& c, Judge& judge) {
  bool looked = false;
  const bool told = each_told(c, judge, [&](const NodeFacts& node, const Nvml& nvml) {
    looked = looked || !gpus_that(nvml, counts_errors).empty();
    for (const Kind& kind : kKinds) report(c, node, nvml, kind, judge);
  });
  if (told && !looked) judge.skip("no GPU counts errors of its memory");
}

// --- the catalogue ---

constexpr std::string_view kConfirm =
    "`nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT`; `dmesg -T | grep -i xid` (48, 63, 64, "
    "94, "
    "95). NVIDIA's document \"GPU Memory Error Management\" explains the counters.";
constexpr Page kBrokenPage{
    .meaning =
        "A row of the GPU's memory is broken and could not be remapped to a spare one: there is "
        "none left in its bank, or the repair failed. Further errors end programs again and again.",
    .confirm = kConfirm,
    .fix =
        "Take the node out of use and ask the vendor to replace the GPU (RMA). NVIDIA's field "
        "diagnostic confirms it.",
    .verify = "`nvidia-smi -q -d ROW_REMAPPER` shows `Remapping Failure Occurred : No`."};
constexpr Page kPendingPage{
    .meaning =
        "An uncorrectable error, or several correctable ones, hit the GPU's memory. The row "
        "(before Ampere: the page) is noted and taken out of use at the next reset of the GPU; "
        "until then a program may meet it again.",
    .confirm = kConfirm,
    .fix = "Drain the node and reset the GPU, or reboot.",
    .verify =
        "`nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT` shows nothing pending after the reset."};
constexpr Page kErrorsPage{
    .meaning =
        "The GPU met memory errors that it could not correct. Each ended the program that met it "
        "(`uncorrectable ECC error encountered`). The count starts anew when the driver is loaded.",
    .confirm = kConfirm,
    .fix = "Nothing, if it was once; else drain the node and have the GPU tested.",
    .verify = "The count does not grow while the job runs."};
constexpr Code kCodes[] = {{.id = "gpu-memory-broken",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::degraded,
                            .title = "GPU memory is beyond repair",
                            .causes = {},
                            .page = kBrokenPage},
                           {.id = "gpu-memory-repair-pending",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::degraded,
                            .title = "GPU memory waits for a reset to be repaired",
                            .causes = {},
                            .page = kPendingPage},
                           {.id = "gpu-memory-errors",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::notice,
                            .title = "A GPU met uncorrectable memory errors",
                            .causes = {},
                            .page = kErrorsPage}};

}  // namespace

extern const Check gpu_memory_errors{
    .title = "GPU memory is sound", .codes = kCodes, .run = run, .needs = Needs::gpus};

}  // namespace distdoctor::checks
