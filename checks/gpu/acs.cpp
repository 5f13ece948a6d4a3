// No PCIe bridge sends traffic between GPUs up to the CPU.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "distance.h"
#include "nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// "A10" of "NVIDIA A10", "A100" of "NVIDIA A100-SXM4-80GB".
std::string_view family_of(std::string_view model) {
  for (const std::string_view maker : {"NVIDIA ", "Tesla "}) {
    if (model.starts_with(maker)) model.remove_prefix(maker.size());
  }
  return model.substr(0, model.find_first_of(" -"));
}

// GPUs that talk over PCIe. NVSwitch, SXM boards and NVLink carry what goes between the others;
// GeForce drivers offer no such access.
bool talks_over_pcie(const Gpu& gpu) {
  constexpr std::array<std::string_view, 11> kFamilies = {"L4",  "L40", "L40S", "A2", "A10", "A10G",
                                                          "A16", "A30", "A40",  "T4", "RTX"};
  if (gpu.vendor != GpuVendor::nvidia) return false;
  return gpu.model.find("PCIe") != std::string::npos ||
         gpu.model.find("PCIE") != std::string::npos ||
         std::ranges::find(kFamilies, family_of(gpu.model)) != kFamilies.end();
}

std::vector<const PciDevice*> pcie_gpus(const NodeFacts& node) {
  return devices_that(*node.pci, [&](const PciDevice& device) {
    const Gpu* gpu = is_nvidia_gpu(device) ? find_gpu(*node.gpu, device.address) : nullptr;
    return gpu != nullptr && talks_over_pcie(*gpu);
  });
}

struct Redirected {
  const PciDevice* gpu;
  const PciDevice* other;
  const PciDevice* port;
};

// Models without the connector for an NVLink bridge.
bool has_no_bridge(const Gpu* gpu) {
  constexpr std::array<std::string_view, 8> kFamilies = {"L4",  "L40",  "L40S", "A2",
                                                         "A10", "A10G", "A16",  "T4"};
  return gpu != nullptr && std::ranges::find(kFamilies, family_of(gpu->model)) != kFamilies.end();
}

// An NVLink bridge joins the two cards ("NV4", "NV12"); none: the driver did not say.
std::optional<bool> joined_by_nvlink(const NodeFacts& node,
                                     const PciDevice& a,
                                     const PciDevice& b) {
  if (has_no_bridge(find_gpu(*node.gpu, a.address))) return false;
  const NvmlGpu* one = find_answer(node, a.address);
  const NvmlGpu* other = find_answer(node, b.address);
  if (one == nullptr || other == nullptr) return std::nullopt;
  const auto pair = std::ranges::find_if(node.nvml->pairs, [&](const NvmlPair& each) {
    return each.a == std::min(one->index, other->index) &&
           each.b == std::max(one->index, other->index);
  });
  if (pair == node.nvml->pairs.end() || pair->path.empty()) return std::nullopt;
  return pair->path.starts_with("NV");
}

// With translated addresses on both sides (ATS) a switch may pass their packets on in spite of ACS.
bool both_translate(const PciDevice& a, const PciDevice& b) {
  return a.ats == true && b.ats == true;
}

void note_unasked(const NodeFacts& node, Judge& judge) {
  const Observed<bool> path =
      Unknown{.kind = Why::failed, .text = "an NVLink bridge may join the GPUs: NVML did not say"};
  judge.see(node, "nvml.path", path);
}

std::vector<Redirected> redirected(const NodeFacts& node, Judge& judge) {
  std::vector<Redirected> all;
  const auto gpus = pcie_gpus(node);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      const PciDevice* port = redirecting_port(*node.pci, *gpus[i], *gpus[j]);
      if (port == nullptr || both_translate(*gpus[i], *gpus[j])) continue;
      const auto joined = joined_by_nvlink(node, *gpus[i], *gpus[j]);
      if (!joined) note_unasked(node, judge);
      if (joined == false) all.push_back({.gpu = gpus[i], .other = gpus[j], .port = port});
    }
  }
  return all;
}

void report(const NodeFacts& node, const std::vector<Redirected>& all, Judge& judge) {
  const Redirected& first = all.front();
  Finding finding{.code = "gpu-acs",
                  .severity = Severity::notice,
                  .certainty = Certainty::possible,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format(
                      "PCIe bridges of {} send traffic between GPUs up to the CPU (ACS), and "
                      "the IOMMU translates it: peer-to-peer copies may hang or be slow",
                      node.host)};
  for (const PciDevice* gpu : {first.gpu, first.other}) {
    finding.subjects.devices.push_back(device_name(node, gpu->address));
  }
  finding.evidence.push_back(
      {.node = node.host,
       .fact = fmt::format("ACS of {}, between GPUs {} and {}", first.port->address,
                           first.gpu->address, first.other->address),
       .observed = all.size() == 1 ? "redirects"
                                   : fmt::format("redirects; {} pairs of GPUs in all", all.size()),
       .expected = "no ReqRedir, no CmpltRedir",
       .command = fmt::format("lspci -vvv -s {} | grep ACSCtl", shell_quote(first.port->address))});
  finding.evidence.push_back({.node = node.host,
                              .fact = "IOMMU",
                              .observed = "translates the GPUs' addresses",
                              .expected = "passes them on, or is off",
                              .command = "cat /sys/kernel/iommu_groups/*/type | sort | uniq -c"});
  finding.fix = {
      {.node = "*",
       .kind = Fix::Kind::env,
       .env = {{"NCCL_P2P_DISABLE", "1"}},
       .text =
           "only to see whether that is it: a job that hung and now runs, more slowly, proves it"},
      by_hand(node, fmt::format(
                        "then boot {} with iommu=pt, and switch ACS off in its BIOS; where guests "
                        "share the machine's devices ACS protects them, and has to stay",
                        node.host))};
  judge.report(std::move(finding));
}

bool nothing_to_redirect(const NodeFacts& node) {
  const bool nvswitch = !devices_that(*node.pci, is_nvswitch).empty();
  return nvswitch || node.pci->virtual_machine || pcie_gpus(node).size() < 2;
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return judge.skip("the job does not use NCCL");
  bool looked = false;
  static const Observed<bool> unread =
      Unknown{.kind = Why::denied, .text = "only root may read the config space of PCI bridges"};
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* gpus = judge.see(node, "gpu", node.gpu);
    if (gpus == nullptr || count_of(*gpus, GpuVendor::nvidia) < 2) continue;
    const auto* pci = judge.see(node, "pci", node.pci);
    if (pci == nullptr || nothing_to_redirect(node) || peer_access_off(c.cluster, node)) continue;
    looked = true;
    if (pci->iommu != "translated") continue;
    if (!pci->config_readable) {
      judge.see(node, "pci.acs", unread);
      continue;
    }
    const auto all = redirected(node, judge);
    if (!all.empty()) report(node, all, judge);
  }
  if (!looked) judge.skip("no two GPUs talk over PCIe bridges");
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "Access Control Services (ACS) of a PCIe switch can send what goes from one GPU to another "
        "up to the root complex. With an IOMMU that translates addresses such copies may hang, "
        "corrupt data or crawl, though CUDA says that peer access works. Many machines run well "
        "so, "
        "which is why this is only a hint: a first collective that hangs on one node is the sign. "
        "Cards that an NVLink bridge joins are not meant, nor those with ATS on.",
    .confirm =
        "`lspci -vvv | grep ACSCtl` as root: `ReqRedir+`; `cat /proc/cmdline`. Run the job with "
        "NCCL_P2P_DISABLE=1: if it no longer hangs, that is it. "
        "NVIDIA's p2pBandwidthLatencyTest shows the same without NCCL.",
    .fix =
        "Boot with `iommu=pt` (or switch the IOMMU off), and switch ACS off in the BIOS. `setpci` "
        "can clear it until the next boot; do that only on machines without guests. Until then: "
        "NCCL_P2P_DISABLE=1.",
    .verify =
        "`lspci -vvv | grep ACSCtl` shows `ReqRedir-` above the GPUs, and the job runs without "
        "NCCL_P2P_DISABLE."};
constexpr Code kCodes[] = {{.id = "gpu-acs",
                            .fault_class = FaultClass::p2p_broken_acs,
                            .worst = Severity::notice,
                            .title = "ACS may stand between the GPUs",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_acs{.title = "PCIe bridges let GPUs talk directly",
                           .codes = kCodes,
                           .run = run,
                           .needs = Needs::gpus};

}  // namespace distdoctor::checks
