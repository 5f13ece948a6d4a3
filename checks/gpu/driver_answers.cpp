// The NVIDIA driver answers its management library.
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

bool has_driver(const NodeFacts& node) {
  return node.gpu.known() && !node.gpu->nvidia_driver.empty();
}

// --- no answer ---

// The same number of GPUs, and they told of them in time: then it is not the waking up of so many.
bool peers_answered(const Case& c, const NodeFacts& silent) {
  return std::ranges::any_of(c.cluster.nodes, [&](const NodeFacts& node) {
    return has_driver(node) && node.nvml.known() && node.nvml->error.empty() &&
           node.gpu->gpus.size() >= silent.gpu->gpus.size();
  });
}

// Until a GPU is first used the kernel shows no UUID of it.
bool were_awake(const NodeFacts& node) {
  return std::ranges::none_of(node.gpu->gpus, [](const Gpu& gpu) {
    return gpu.vendor == GpuVendor::nvidia && gpu.uuid.empty();
  });
}

void judge_silence(const Case& c, const NodeFacts& node, Judge& judge) {
  const bool odd = peers_answered(c, node) && were_awake(node);
  Finding finding{
      .code = "gpu-driver-hangs",
      .severity = odd ? capped_by_nccl(c.cluster.job, Severity::degraded) : Severity::notice,
      .certainty = odd ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::hang,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("the NVIDIA driver of {} did not answer in time: {}", node.host,
                             odd ? "it hangs, or one of its GPUs does; other nodes answered"
                                 : "it hangs, or has to wake up its GPUs first (persistence mode "
                                   "off)")};
  finding.evidence.push_back({.node = node.host,
                              .fact = "NVML",
                              .observed = node.nvml.why().text,
                              .expected = "an answer within seconds",
                              .command = "time timeout 60 nvidia-smi -L"});
  finding.fix = {by_hand(
      node, fmt::format("`dmesg -T | grep -iE 'nvrm|xid|blocked for more'` says whether it hangs: "
                        "then drain {} and reboot it. If nvidia-smi only takes long: `systemctl "
                        "enable --now nvidia-persistenced`",
                        node.host))};
  judge.report(std::move(finding));
}

// --- an error instead of an answer ---

constexpr int kLibraryNotFound = 12;
constexpr int kMismatch = 18;  // gpu/driver_mismatch tells of it

void judge_missing(const Case& c, const NodeFacts& node, Judge& judge) {
  const auto severity = c.cluster.job.nccl == Use::yes ? Severity::blocker : Severity::notice;
  Finding finding{.code = "gpu-nvml-missing",
                  .severity = capped_by_context(severity, node.context),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} has an NVIDIA driver, but libnvidia-ml.so.1, which "
                                         "NCCL needs, cannot be loaded there",
                                         node.host)};
  finding.evidence.push_back({.node = node.host,
                              .fact = "libnvidia-ml.so.1",
                              .observed = node.nvml->error,
                              .expected = "found by the loader",
                              .context = std::string(slug(node.context)),
                              .command = "ldconfig -p | grep libnvidia-ml"});
  finding.fix = {by_hand(
      node, in_container(node)
                ? "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility (or all)"
                : "install the driver's libraries of the version in /proc/driver/nvidia/version")};
  judge.report(std::move(finding));
}

// Lost, reset, busy or without resources: nothing that another user or container would change.
bool tells_of_the_driver(int code) {
  constexpr std::array kCodesOfTrouble = {10, 15, 16, 20, 23, 999};
  return std::ranges::find(kCodesOfTrouble, code) != kCodesOfTrouble.end();
}

void judge_error(const Case& c, const NodeFacts& node, Judge& judge) {
  const bool driver = tells_of_the_driver(node.nvml->error_code);
  Finding finding{
      .code = "gpu-driver-fails",
      .severity = driver ? capped_by_nccl(c.cluster.job, Severity::degraded) : Severity::notice,
      .certainty = driver ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("the NVIDIA driver of {} refuses to tell of its GPUs: {}", node.host,
                             node.nvml->error)};
  finding.evidence.push_back(
      {.node = node.host,
       .fact = "nvmlInit",
       .observed = fmt::format("{} ({})", node.nvml->error, node.nvml->error_code),
       .expected = "success",
       .context = std::string(slug(node.context)),
       .command = "nvidia-smi; ls -l /dev/nvidia*"});
  finding.fix = {by_hand(
      node, driver
                ? fmt::format("`dmesg -T | grep -iE 'nvrm|xid'` says why; drain {} and reboot it",
                              node.host)
                : std::string("look whether the job may open /dev/nvidiactl and /dev/nvidia*"))};
  judge.report(std::move(finding));
}

void judge_node(const Case& c, const NodeFacts& node, Judge& judge) {
  if (!node.nvml.known()) {
    judge.see(node, "nvml", node.nvml);
    if (node.nvml.why().kind == Why::timed_out) judge_silence(c, node, judge);
  } else if (node.nvml->error_code == kLibraryNotFound) {
    judge_missing(c, node, judge);
  } else if (!node.nvml->error.empty() && node.nvml->error_code != kMismatch) {
    judge_error(c, node, judge);
  }
}

void run(const Case& c, Judge& judge) {
  bool drivers = false;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (judge.see(node, "gpu", node.gpu) == nullptr || !has_driver(node)) continue;
    drivers = true;
    judge_node(c, node, judge);
  }
  if (!drivers) judge.skip(kNoDriver);
}

// --- the catalogue ---

constexpr std::string_view kVerify = "`nvidia-smi` prints its table, within seconds.";
constexpr Page kHangsPage{
    .meaning =
        "The driver's management library was asked for the state of the GPUs and did not come "
        "back. A driver that hangs stops every CUDA program that starts, also `nvidia-smi`. But "
        "where no program keeps the GPUs awake and persistence mode is off, the driver wakes each "
        "of them first, which may take as long: that is slow, and nothing worse.",
    .confirm =
        "`time timeout 60 nvidia-smi -L`; `dmesg -T | grep -iE 'nvrm|xid|blocked for more'`; "
        "`ps -eo pid,stat,wchan:30,args | grep ' D'`.",
    .fix =
        "A driver that hangs needs a reboot. Against slow starts: `systemctl enable --now "
        "nvidia-persistenced`.",
    .verify = kVerify};
constexpr Page kMissingPage{
    .meaning =
        "NCCL loads libnvidia-ml.so.1 when it starts; here the loader does not find it, though "
        "the kernel has an NVIDIA driver: `Failed to open libnvidia-ml.so.1`. In containers that "
        "is a start without the capability `utility`.",
    .confirm = "`ldconfig -p | grep libnvidia-ml`, in the job's own world.",
    .fix =
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility for the container; on a host the package with "
        "the driver's libraries.",
    .verify = "`nvidia-smi` runs in the job's own world."};
constexpr Page kFailsPage{
    .meaning =
        "The driver is loaded, but its management library gets an error instead of a list of GPUs. "
        "CUDA programs will most likely fail, too.",
    .confirm = "`nvidia-smi`; `dmesg -T | grep -iE 'nvrm|xid'`.",
    .fix =
        "Lost GPUs and unknown errors: drain the node and reboot it. Insufficient permissions, or "
        "a driver that seems not loaded: the device nodes /dev/nvidia* are absent or forbidden "
        "here.",
    .verify = kVerify};
constexpr Code kCodes[] = {{.id = "gpu-driver-hangs",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::degraded,
                            .title = "The NVIDIA driver does not answer in time",
                            .causes = {},
                            .page = kHangsPage},
                           {.id = "gpu-nvml-missing",
                            .fault_class = FaultClass::container_gpu_visibility,
                            .worst = Severity::blocker,
                            .title = "NCCL will not find libnvidia-ml.so.1",
                            .causes = {},
                            .page = kMissingPage},
                           {.id = "gpu-driver-fails",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::degraded,
                            .title = "The NVIDIA driver tells an error",
                            .causes = {},
                            .page = kFailsPage}};

}  // namespace

extern const Check gpu_driver_answers{
    .title = "NVIDIA drivers answer", .codes = kCodes, .run = run, .needs = Needs::gpus};

}  // namespace distdoctor::checks
