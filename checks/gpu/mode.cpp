// No GPU is in a mode that keeps the ranks of a job from it: MIG, or a compute mode.
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

bool has_mig(const NvmlGpu& gpu) {
  return gpu.mig == true;
}

bool is_prohibited(const NvmlGpu& gpu) {
  return gpu.compute_mode == "prohibited";
}

// What the ranks of one node may use without these GPUs.
bool in_the_way(const Case& c, const Nvml& nvml, std::size_t without) {
  return c.cluster.job.nccl == Use::yes &&
         too_few_for_ranks(c.cluster.job, nvml.gpus.size() - without);
}

// --- MIG ---

// A single rank on a node may well use one instance.
void judge_mig(const Case& c, const NodeFacts& node, const Nvml& nvml, Judge& judge) {
  const auto split = gpus_that(nvml, has_mig);
  if (split.empty()) return;
  const bool several = c.cluster.job.ranks_per_node.value_or(1) > 1;
  const bool bad = several && in_the_way(c, nvml, split.size());
  Finding finding{.code = "gpu-mig-mode",
                  .severity = bad ? Severity::degraded : Severity::notice,
                  .certainty = bad ? Certainty::likely : Certainty::possible,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} of {} on {} are split up by MIG: a rank sees one "
                                         "instance, and none reaches another rank's directly",
                                         split.size(), plural(nvml.gpus.size(), "GPU"), node.host)};
  for (const NvmlGpu* gpu : split) {
    add_row(node,
            {.gpu = gpu,
             .what = "MIG mode",
             .observed = "enabled",
             .expected = "disabled, for a job of several GPUs",
             .command = fmt::format("nvidia-smi -i {} --query-gpu=mig.mode.current --format=csv",
                                    shell_quote(handle_of(*gpu)))},
            finding);
  }
  finding.fix = {by_hand(
      node, fmt::format("run the job on whole GPUs, or drain {} and switch MIG off as root: "
                        "`nvidia-smi -mig 0`, which ends all instances and resets the GPUs",
                        node.host))};
  judge.report(std::move(finding));
}

// --- compute mode ---

Fix open_to_programs(const NodeFacts& node, const NvmlGpu& gpu) {
  const auto command = fmt::format("nvidia-smi -i {} -c DEFAULT", shell_quote(handle_of(gpu)));
  if (in_container(node)) {
    return by_hand(node, fmt::format("on the host, not in this container: `{}` as root; somebody "
                                     "set it on purpose: ask first",
                                     command));
  }
  return {.node = node.host,
          .kind = Fix::Kind::shell,
          .command = command,
          .text = "as root; somebody set it on purpose: ask first"};
}

void judge_compute_mode(const Case& c, const NodeFacts& node, const Nvml& nvml, Judge& judge) {
  const auto shut = gpus_that(nvml, is_prohibited);
  if (shut.empty()) return;
  const bool bad = in_the_way(c, nvml, shut.size());
  Finding finding{.code = "gpu-compute-prohibited",
                  .severity = bad ? Severity::blocker : Severity::notice,
                  .certainty = bad ? Certainty::likely : Certainty::possible,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} of {} on {} are set to let no program compute",
                                         shut.size(), plural(nvml.gpus.size(), "GPU"), node.host)};
  for (const NvmlGpu* gpu : shut) {
    add_row(node,
            {.gpu = gpu,
             .what = "compute mode",
             .observed = gpu->compute_mode,
             .expected = "default",
             .command = query(*gpu, "COMPUTE")},
            finding);
    finding.fix.push_back(open_to_programs(node, *gpu));
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  each_told(c, judge, [&](const NodeFacts& node, const Nvml& nvml) {
    judge_mig(c, node, nvml, judge);
    judge_compute_mode(c, node, nvml, judge);
  });
}

// --- the catalogue ---

constexpr Page kMigPage{
    .meaning =
        "MIG splits a GPU into instances. A CUDA program sees one instance only, and there is no "
        "direct way between instances, so that several ranks of a job on one node find `invalid "
        "device ordinal`, `Duplicate GPU detected` or no peer-to-peer access.",
    .confirm =
        "`nvidia-smi -L` lists MIG devices below the GPUs; `nvidia-smi --query-gpu=mig.mode."
        "current --format=csv`.",
    .fix =
        "Use nodes without MIG for a job of several GPUs. `nvidia-smi -mig 0` as root switches it "
        "off, with no program on the GPU.",
    .verify = "`nvidia-smi -L` lists as many GPUs as the node has ranks, and no MIG device."};
constexpr Page kProhibitedPage{
    .meaning =
        "The GPU's compute mode is `Prohibited`: no CUDA program may use it, and CUDA says `all "
        "CUDA-capable devices are busy or unavailable`. (`Exclusive Process`, one program a GPU, "
        "is what many clusters have on purpose, and works.)",
    .confirm = "`nvidia-smi -q -d COMPUTE`.",
    .fix = "`nvidia-smi -i GPU -c DEFAULT` as root, once it is clear why it was set.",
    .verify = "`nvidia-smi -q -d COMPUTE` shows `Default` or `Exclusive_Process`."};
constexpr Code kCodes[] = {{.id = "gpu-mig-mode",
                            .fault_class = FaultClass::dup_gpu,
                            .worst = Severity::degraded,
                            .title = "GPUs are split up by MIG",
                            .causes = {},
                            .page = kMigPage},
                           {.id = "gpu-compute-prohibited",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::blocker,
                            .title = "GPUs let no program compute",
                            .causes = {},
                            .page = kProhibitedPage}};

}  // namespace

extern const Check gpu_mode{.title = "GPUs are whole and open to programs",
                            .codes = kCodes,
                            .run = run,
                            .needs = Needs::gpus};

}  // namespace distdoctor::checks
