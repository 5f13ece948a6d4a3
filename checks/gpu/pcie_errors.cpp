// No PCIe link of a GPU met a fatal error since the driver was loaded.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>
#include <distdoctor/xid.h>

#include "devices.h"
#include "nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;

// "pcieport 0000:00:03.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=...": newer
// kernels say "Uncorrectable". What is not fatal happens on healthy machines when they start.
bool is_fatal(const KernelLine& line) {
  return line.text.find("PCIe Bus Error: severity=Uncorrect") != std::string::npos &&
         line.text.find("(Fatal)") != std::string::npos;
}

bool names(const KernelLine& line, const std::string& address) {
  return line.text.find(" " + address + ": ") != std::string::npos;
}

// It is of the GPU itself, or of a bridge that leads to no other GPU.
bool concerns(const KernelLine& line, const Pci& pci, const PciDevice& gpu) {
  if (names(line, gpu.address)) return true;
  return std::ranges::any_of(gpu.above, [&](const std::string& bridge) {
    if (!names(line, bridge)) return false;
    const auto below = devices_that(pci, [&](const PciDevice& device) {
      return is_nvidia_gpu(device) && std::ranges::find(device.above, bridge) != device.above.end();
    });
    return below.size() <= 1;
  });
}

// The newest, since the driver was loaded last.
const KernelLine* last_error(const KernelLog& log, const Pci& pci, const PciDevice& gpu) {
  for (const KernelLine& line : log.lines | std::views::reverse) {
    if (is_driver_load(line)) return nullptr;
    if (is_fatal(line) && concerns(line, pci, gpu)) return &line;
  }
  return nullptr;
}

// Of late; after an hour only where the driver does not find the GPU sound by now.
bool still_counts(const NodeFacts& node, const PciDevice& gpu, double age_s) {
  const NvmlGpu* answer = find_answer(node, gpu.address);
  const bool sound = answer != nullptr && is_sound(*answer);
  return age_s <= (sound ? kHour : kDay);
}

void report(const Case& c,
            const NodeFacts& node,
            const PciDevice& gpu,
            const KernelLine& line,
            Judge& judge) {
  const double age = std::max(0.0, node.kernel_log->now_s - line.uptime_s);
  const bool fresh = still_counts(node, gpu, age);
  Finding finding{
      .code = "gpu-pcie-errors",
      .severity = capped_by_nccl(c.cluster.job, fresh ? Severity::degraded : Severity::notice),
      .certainty = fresh ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::hang,
      .subjects = {.nodes = {node.host}, .devices = {device_name(node, gpu.address)}},
      .summary = fmt::format("the PCIe link of GPU {} of {} met a fatal error {:.0f} min ago",
                             gpu.address, node.host, age / 60)};
  finding.evidence.push_back({.node = node.host,
                              .fact = fmt::format("kernel log, PCIe of GPU {}", gpu.address),
                              .observed = line.text,
                              .expected = "no fatal error",
                              .command = "dmesg -T | grep -E 'AER|PCIe Bus Error'"});
  finding.fix = {by_hand(
      node, fmt::format("drain {}, power it off and seat the GPU, its riser and its power cables "
                        "again; if it comes back, the card or the slot has to be replaced",
                        node.host))};
  judge.report(std::move(finding));
}

// Whether a GPU was seen on the bus.
bool judge_node(const Case& c, const NodeFacts& node, Judge& judge) {
  bool looked = false;
  for (const Gpu& gpu : node.gpu->gpus) {
    const PciDevice* device = find_device(*node.pci, gpu.pci);
    if (device == nullptr) continue;
    looked = true;
    const KernelLine* line = last_error(*node.kernel_log, *node.pci, *device);
    if (line != nullptr) report(c, node, *device, *line, judge);
  }
  return looked;
}

void run(const Case& c, Judge& judge) {
  bool looked = false;
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* gpus = judge.see(node, "gpu", node.gpu);
    if (gpus == nullptr || gpus->gpus.empty()) continue;
    const auto* pci = judge.see(node, "pci", node.pci);
    const auto* log = judge.see(node, "kernel_log", node.kernel_log);
    if (pci != nullptr && log != nullptr) looked = judge_node(c, node, judge) || looked;
  }
  if (!looked) judge.skip("no GPU is seen on a PCI bus");
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "The kernel's error reporting for PCIe (AER) tells of a fatal error on the link of a GPU. "
        "The link is then reset, and the GPU is mostly lost to its driver (Xid 79): a card that is "
        "not seated well, a bad riser or slot, power.",
    .confirm = "`dmesg -T | grep -E 'AER|PCIe Bus Error'`, and `nvidia-smi -L` for what is left.",
    .fix = "Power off; seat card, riser and cables again. If it comes back, replace them.",
    .verify = "The job runs, and the command shows no new line with `(Fatal)`."};
constexpr std::string_view kLost[] = {"gpu-missing", "gpu-xid"};
constexpr Code kCodes[] = {{.id = "gpu-pcie-errors",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::degraded,
                            .title = "The PCIe link of a GPU met a fatal error",
                            .causes = kLost,
                            .page = kPage}};

}  // namespace

extern const Check gpu_pcie_errors{.title = "PCIe links of GPUs met no fatal error",
                                   .codes = kCodes,
                                   .run = run,
                                   .needs = Needs::gpus};

}  // namespace distdoctor::checks
