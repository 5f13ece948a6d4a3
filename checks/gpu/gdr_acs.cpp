// No PCIe bridge sends traffic between a GPU and its RDMA card up to the CPU.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "cards.h"
#include "devices.h"
#include "distance.h"

#include <fmt/format.h>

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

struct Detour {
  const PciDevice* gpu;
  const PciDevice* card;
  const PciDevice* port;
};

std::vector<Detour> detours(const NodeFacts& node) {
  std::vector<Detour> all;
  for (const RdmaDevice* rdma : cards_of(node)) {
    const PciDevice* card = find_device(*node.pci, rdma->pci);
    // A card that asks for addresses first (ATS) may send past ACS.
    if (card == nullptr || card->ats == true) continue;
    for (const PciDevice* gpu : devices_that(*node.pci, is_nvidia_gpu)) {
      const PciDevice* port = redirecting_port(*node.pci, *gpu, *card);
      if (port != nullptr) all.push_back({.gpu = gpu, .card = card, .port = port});
    }
  }
  return all;
}

void report(const NodeFacts& node, const std::vector<Detour>& all, Judge& judge) {
  const Detour& first = all.front();
  const std::string port = shell_quote(first.port->address);
  Finding finding{
      .code = "gpu-gdr-acs",
      .severity = Severity::notice,
      .certainty = Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {node.host}, .devices = {device_name(node, first.gpu->address)}},
      .summary =
          fmt::format("PCIe bridges of {} send traffic between GPUs and RDMA cards up to the "
                      "CPU (ACS), and the IOMMU translates it: GPUDirect RDMA may be slow",
                      node.host)};
  finding.evidence.push_back(
      {.node = node.host,
       .fact = fmt::format("ACS of {}, between GPU {} and card {}", first.port->address,
                           first.gpu->address, first.card->address),
       .observed =
           all.size() == 1 ? "redirects" : fmt::format("redirects; {} pairs in all", all.size()),
       .expected = "no ReqRedir, no CmpltRedir",
       .command = fmt::format("lspci -vvv -s {} | grep ACSCtl; cat "
                              "/sys/kernel/iommu_groups/*/type | sort | uniq -c",
                              port)});
  finding.fix = {
      {.node = "*",
       .kind = Fix::Kind::env,
       .env = {{"NCCL_NET_GDR_LEVEL", "LOC"}},
       .text = "only to see whether that is it: a job that runs faster without GPUDirect "
               "RDMA proves it"},
      by_hand(node, fmt::format("then boot {} with iommu=pt, and switch ACS off in its "
                                "BIOS; where guests share the machine's devices ACS "
                                "protects them, and has to stay",
                                node.host))};
  judge.report(std::move(finding));
}

// Whether there was anything on the way to look at.
bool judge_node(const Case& c, const NodeFacts& node, Judge& judge) {
  static const Observed<bool> unread =
      Unknown{.kind = Why::denied, .text = "only root may read the config space of PCI bridges"};
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  const bool direct = node.gpu->peermem || node.gpu->nvidia_open;
  if (!direct || prediction == nullptr || !rdma_carries_data(node, prediction->settings)) {
    return false;
  }
  if (cards_of(node).empty() || node.pci->virtual_machine) return false;
  if (node.pci->iommu != "translated") return true;
  if (!node.pci->config_readable) {
    judge.see(node, "pci.acs", unread);
    return true;
  }
  const auto all = detours(node);
  if (!all.empty()) report(node, all, judge);
  return true;
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return judge.skip("the job does not use NCCL");
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  bool looked = false;
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* gpus = judge.see(node, "gpu", node.gpu);
    const auto* devices = judge.see(node, "devices", node.devices);
    if (gpus == nullptr || count_of(*gpus, GpuVendor::nvidia) == 0) continue;
    if (devices == nullptr || devices->rdma.empty()) continue;
    const auto* pci = judge.see(node, "pci", node.pci);
    const auto* rdma = judge.see(node, "rdma", node.rdma);
    if (pci != nullptr && rdma != nullptr) looked = judge_node(c, node, judge) || looked;
  }
  if (!looked) judge.skip("no RDMA card that GPUs could use directly carries the job's data");
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "With GPUDirect RDMA a card reads and writes GPU memory below one PCIe switch. Access "
        "Control Services (ACS) send that up to the root complex instead, where an IOMMU "
        "translates "
        "each address: often a fraction of the speed, sometimes errors. Some platforms are fast "
        "even so: measure.",
    .confirm =
        "`lspci -vvv | grep ACSCtl` as root: `ReqRedir+`; all_reduce_perf of nccl-tests once as it "
        "is and once with NCCL_NET_GDR_LEVEL=LOC.",
    .fix =
        "Boot with `iommu=pt` (or switch the IOMMU off), and switch ACS off in the BIOS, on "
        "machines "
        "without guests.",
    .verify = "`lspci -vvv | grep ACSCtl` shows `ReqRedir-`, and the bandwidth has risen."};
constexpr Code kCodes[] = {{.id = "gpu-gdr-acs",
                            .fault_class = FaultClass::gdr_broken_acs,
                            .worst = Severity::notice,
                            .title = "ACS may stand between GPUs and RDMA cards",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_gdr_acs{.title = "PCIe bridges let GPUs and RDMA cards talk directly",
                               .codes = kCodes,
                               .run = run,
                               .needs = Needs::gpus};

}  // namespace distdoctor::checks
