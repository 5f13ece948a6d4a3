// GPUs that belong to an NVSwitch fabric have been let into it.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

bool waits(const NvmlGpu& gpu) {
  return gpu.fabric_state == "not started" || gpu.fabric_state == "in progress";
}

bool refused(const NvmlGpu& gpu) {
  return gpu.fabric_state == "completed" && !gpu.fabric_status.empty() &&
         gpu.fabric_status != "success";
}

// A virtual machine with a single GPU may be meant to do without the fabric.
bool alone(const NodeFacts& node, const Nvml& nvml) {
  const bool switches = node.pci.known() && std::ranges::any_of(node.pci->devices, &is_nvswitch);
  return nvml.gpus.size() == 1 && !switches;
}

bool has_programs(const Nvml& nvml) {
  return std::ranges::any_of(nvml.gpus, [](const NvmlGpu& gpu) { return !gpu.processes.empty(); });
}

Fix start_the_manager(const NodeFacts& node, const Nvml& nvml) {
  if (in_container(node)) {
    return by_hand(node, fmt::format("on the host below {}, not in this container: drain it and "
                                     "start nvidia-fabricmanager again, in the driver's version",
                                     node.host));
  }
  if (has_programs(nvml)) {
    return by_hand(node, fmt::format("drain {}, then start nvidia-fabricmanager again: with "
                                     "programs on the GPUs a restart ends them",
                                     node.host));
  }
  return {.node = node.host,
          .kind = Fix::Kind::shell,
          .command =
              "apps=$(nvidia-smi --query-compute-apps=pid --format=csv,noheader) && "
              "test -z \"$apps\" && systemctl restart nvidia-fabricmanager && "
              "nvidia-smi -q | grep -A 2 Fabric",
          .text =
              "as root, on a drained node: a restart ends every job on its GPUs, so the command "
              "does nothing while a program is on one; `journalctl -u nvidia-fabricmanager` says "
              "why it fails, often that its version is not the driver's. In a virtual machine "
              "it may run on the host"};
}

void judge_node(const Case& c, const NodeFacts& node, const Nvml& nvml, Judge& judge) {
  const auto out = gpus_that(nvml, [](const NvmlGpu& gpu) { return waits(gpu) || refused(gpu); });
  if (out.empty()) return;
  const bool single = alone(node, nvml);
  Finding finding{
      .code = "gpu-fabric-not-ready",
      .severity = single ? Severity::notice : capped_by_nccl(c.cluster.job, Severity::blocker),
      .certainty = single ? Certainty::possible : Certainty::likely,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("{} of {} on {} are not in the NVSwitch fabric, so that CUDA does not "
                             "start on them",
                             out.size(), plural(nvml.gpus.size(), "GPU"), node.host)};
  for (const NvmlGpu* gpu : out) {
    const std::string status = waits(*gpu) ? "" : fmt::format(", {}", gpu->fabric_status);
    add_row(node,
            {.gpu = gpu,
             .what = "fabric",
             .observed = gpu->fabric_state + status,
             .expected = "completed, success",
             .command = fmt::format("nvidia-smi -q -i {} | grep -A 3 Fabric",
                                    shell_quote(handle_of(*gpu)))},
            finding);
  }
  finding.fix = {start_the_manager(node, nvml)};
  judge.report(std::move(finding));
}

// GPUs of before Hopper, and old libraries, do not tell of theirs.
bool tells_of_fabric(const NvmlGpu& gpu) {
  return !gpu.fabric_state.empty() && gpu.fabric_state != "not supported";
}

void run(const Case& c, Judge& judge) {
  bool looked = false;
  const bool told = each_told(c, judge, [&](const NodeFacts& node, const Nvml& nvml) {
    looked = looked || std::ranges::any_of(nvml.gpus, tells_of_fabric);
    judge_node(c, node, nvml, judge);
  });
  if (told && !looked) judge.skip("no GPU tells of an NVSwitch fabric");
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "The GPU is built for an NVSwitch fabric, and the fabric has not let it in: the fabric "
        "manager does not run, is of another version than the driver, or met a fault. CUDA then "
        "fails with error 802, `system not yet initialized`, or NCCL when it sets up NVLS "
        "(`Failed to bind NVLink SHARP`). For some seconds after a boot this is normal.",
    .confirm =
        "`nvidia-smi -q | grep -A 3 Fabric`: `State : In Progress`, or a status other than "
        "`Success`; `systemctl status nvidia-fabricmanager`; `dmesg -T | grep -i nvswitch`.",
    .fix =
        "Give nvidia-fabricmanager exactly the driver's version and start it: `systemctl enable "
        "--now nvidia-fabricmanager`. If it runs and the state stays, drain the node and reboot "
        "it. In a cloud's virtual machine the fabric is the provider's.",
    .verify = "`nvidia-smi -q | grep -A 3 Fabric` shows `Completed` and `Success` for each GPU."};
constexpr std::string_view kCauses[] = {"collective-fabric-not-ready", "collective-node-no-fabric"};
constexpr Code kCodes[] = {{.id = "gpu-fabric-not-ready",
                            .fault_class = FaultClass::fabric_manager,
                            .worst = Severity::blocker,
                            .title = "GPUs wait for the NVSwitch fabric",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check gpu_fabric{.title = "GPUs are in their NVSwitch fabric",
                              .codes = kCodes,
                              .run = run,
                              .needs = Needs::gpus};

}  // namespace distdoctor::checks
