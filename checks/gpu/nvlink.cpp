// GPUs of one model on a node have equally many NVLinks up.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "nvml.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// With MIG, NVLink is off on purpose.
bool comparable(const NvmlGpu& gpu) {
  return gpu.error.empty() && gpu.mig != true && gpu.nvlinks > 0;
}

using Models = std::map<std::string, std::vector<const NvmlGpu*>>;

Models models_of(const Nvml& nvml) {
  Models models;
  for (const NvmlGpu* gpu : gpus_that(nvml, comparable)) models[gpu->name].push_back(gpu);
  return models;
}

// Cards that bridges join in pairs may have none, beside others that have; in a fabric every GPU
// has its links.
bool has_fewer(const NvmlGpu& gpu, int usual) {
  const bool fabric = !gpu.fabric_state.empty() && gpu.fabric_state != "not supported";
  return gpu.nvlinks_active < usual && (gpu.nvlinks_active > 0 || fabric);
}

void judge_model(const Case& c,
                 const NodeFacts& node,
                 const std::vector<const NvmlGpu*>& gpus,
                 Judge& judge) {
  const auto usual = usual_value(gpus, [](const NvmlGpu* gpu) { return gpu->nvlinks_active; });
  if (!usual || !usual->clear) return;
  Finding finding{.code = "gpu-nvlink-down",
                  .severity = capped_by_nccl(c.cluster.job, Severity::degraded),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = {node.host}},
                  .summary = ""};
  for (const NvmlGpu* gpu : gpus) {
    if (!has_fewer(*gpu, usual->value)) continue;
    add_row(node,
            {.gpu = gpu,
             .what = "NVLinks up",
             .observed = fmt::to_string(gpu->nvlinks_active),
             .expected = fmt::format("{}, as its neighbours have", usual->value),
             .command = fmt::format("nvidia-smi nvlink -s -i {}", shell_quote(handle_of(*gpu)))},
            finding);
  }
  if (finding.evidence.empty()) return;
  finding.summary =
      fmt::format("{} on {} have NVLinks down", plural(finding.evidence.size(), "GPU"), node.host);
  finding.fix = {by_hand(
      node,
      fmt::format("`nvidia-smi nvlink -e` and `dmesg -T | grep -iE 'xid|sxid'` show errors of "
                  "the link; drain {} and reset all GPUs and switches together, or reboot. "
                  "Cards with a bridge: seat it anew",
                  node.host))};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  bool looked = false;
  const bool told = each_told(c, judge, [&](const NodeFacts& node, const Nvml& nvml) {
    for (const auto& [model, gpus] : models_of(nvml)) {
      looked = looked || gpus.size() > 1;
      judge_model(c, node, gpus, judge);
    }
  });
  if (told && !looked) judge.skip("no node has two GPUs of one model with NVLinks");
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "A GPU has fewer NVLinks up than others of its model on the same node. NCCL plans for what "
        "it finds, so that everything between this GPU and the others is slower, or it refuses: "
        "`P2P is disabled between NVLINK connected GPUs`.",
    .confirm = "`nvidia-smi nvlink -s` shows `<inactive>`; `nvidia-smi topo -m` shows other NV#.",
    .fix =
        "Reset all GPUs of the node together, or reboot. A link that stays down is a bridge, a "
        "cable, an NVSwitch or a GPU for the vendor to look at.",
    .verify = "`nvidia-smi nvlink -s` shows as many links on each GPU."};
constexpr Code kCodes[] = {{.id = "gpu-nvlink-down",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::degraded,
                            .title = "NVLinks of a GPU are down",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_nvlink{.title = "GPUs have equally many NVLinks up",
                              .codes = kCodes,
                              .run = run,
                              .needs = Needs::gpus};

}  // namespace distdoctor::checks
