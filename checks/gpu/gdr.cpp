// RDMA cards can reach the GPUs' memory (GPUDirect RDMA), and stand near them.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>
#include <distdoctor/workers.h>

#include "cards.h"
#include "devices.h"
#include "distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// --- which GPUs and cards ---

// GeForce has no GPUDirect RDMA at all.
std::vector<const PciDevice*> gpus_of(const NodeFacts& node) {
  return devices_that(*node.pci, [&](const PciDevice& device) {
    const Gpu* gpu = is_nvidia_gpu(device) ? find_gpu(*node.gpu, device.address) : nullptr;
    return gpu != nullptr && gpu->model.find("GeForce") == std::string::npos;
  });
}

struct Near {
  const PciDevice* gpu;
  const PciDevice* card;
  Distance distance;
};

// For each GPU its nearest card, as far as the bus shows both.
std::vector<Near> nearest_cards(const NodeFacts& node,
                                const std::vector<const RdmaDevice*>& cards,
                                const std::vector<const PciDevice*>& gpus) {
  std::vector<Near> all;
  for (const PciDevice* gpu : gpus) {
    std::optional<Near> best;
    for (const RdmaDevice* card : cards) {
      const PciDevice* device = find_device(*node.pci, card->pci);
      if (device == nullptr) continue;
      const Near here{.gpu = gpu, .card = device, .distance = distance_between(*gpu, *device)};
      if (!best || here.distance < best->distance) best = here;
    }
    if (best) all.push_back(*best);
  }
  return all;
}

bool some_close(const std::vector<Near>& nearest) {
  return std::ranges::any_of(nearest,
                             [](const Near& near) { return near.distance <= Distance::pxb; });
}

// --- whether it can work ---

// "5.12.0-1-generic" and later. Red Hat brought it to its 4.18, too.
bool kernel_has_dma_buf(std::string_view release) {
  const auto dot = std::min(release.find('.'), release.size());
  const auto rest = release.substr(std::min(dot + 1, release.size()));
  const int major = number(release.substr(0, dot)).value_or(0);
  const int minor = number(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0);
  return major > 5 || (major == 5 && minor >= 12) || release.find(".el8") != std::string_view::npos;
}

bool dma_buf_possible(const NodeFacts& node, const Settings& settings) {
  const auto off = settings.find("NCCL_DMABUF_ENABLE");
  if (off != settings.end() && off->second.value == "0") return false;
  return node.gpu->nvidia_open && kernel_has_dma_buf(node.identity->kernel);
}

// A module is loaded into the host's kernel, which a container may not do.
Fix load_peermem(const NodeFacts& node) {
  if (in_container(node)) {
    return by_hand(node, fmt::format("on the host below {}, as root, not in this container: load "
                                     "the module nvidia-peermem (modprobe), and name it in "
                                     "/etc/modules-load.d for the next boot",
                                     node.host));
  }
  return {.node = node.host,
          .kind = Fix::Kind::shell,
          .command = "modprobe nvidia-peermem",
          .text =
              "as root; for good: a file with `nvidia-peermem` in /etc/modules-load.d. "
              "It needs the card's driver to be loaded first"};
}

void report_disabled(const Case& c, const NodeFacts& node, Judge& judge) {
  const auto severity = c.cluster.job.nccl == Use::yes ? Severity::degraded : Severity::notice;
  Finding finding{
      .code = "gpu-gdr-disabled",
      .severity = severity,
      .certainty = Certainty::likely,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("RDMA cards of {} cannot read and write GPU memory themselves: all "
                             "data between nodes goes by way of the CPU's memory",
                             node.host)};
  finding.evidence.push_back(
      {.node = node.host,
       .fact = "nvidia_peermem",
       .observed = node.gpu->nvidia_open ? "not loaded, and no DMA-BUF with this kernel"
                                         : "not loaded, and no DMA-BUF with this NVIDIA module",
       .expected = "loaded",
       .command =
           "lsmod | grep -E 'nvidia_peermem|nv_peer_mem'; head -1 /proc/driver/nvidia/version; "
           "uname -r"});
  finding.fix = {load_peermem(node)};
  judge.report(std::move(finding));
}

void report_far(const NodeFacts& node, const std::vector<Near>& nearest, Judge& judge) {
  Finding finding{.code = "gpu-nic-far",
                  .severity = Severity::notice,
                  .certainty = Certainty::possible,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format(
                      "no GPU of {} shares a PCIe root port with an RDMA card: NCCL does not "
                      "use GPUDirect RDMA between them unless NCCL_NET_GDR_LEVEL says so",
                      node.host)};
  for (const Near& near : nearest) {
    finding.evidence.push_back(
        {.node = node.host,
         .fact = fmt::format("distance of GPU {} to {}", near.gpu->address, near.card->address),
         .observed = std::string(name_of(near.distance)),
         .expected = "PIX or PXB",
         .command = "nvidia-smi topo -m"});
  }
  finding.fix = {
      by_hand(node,
              "where the slots allow it, put the card below the PCIe switch of the GPUs; "
              "NCCL_NET_GDR_LEVEL=PHB is worth a measurement")};
  judge.report(std::move(finding));
}

// --- together ---

// Whether there was a card and a GPU to look at.
bool judge_node(const Case& c, const NodeFacts& node, Judge& judge) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  if (prediction == nullptr || !rdma_carries_data(node, prediction->settings)) return false;
  const auto cards = cards_of(node);
  const auto gpus = gpus_of(node);
  if (cards.empty() || gpus.empty()) return false;
  const auto nearest = nearest_cards(node, cards, gpus);
  // The bus of a guest is made up.
  const bool guest = node.pci->virtual_machine;
  if (!guest && !nearest.empty() && !some_close(nearest)) {
    report_far(node, nearest, judge);
  } else if (!node.gpu->peermem && !dma_buf_possible(node, prediction->settings)) {
    report_disabled(c, node, judge);
  }
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
    const auto* identity = judge.see(node, "identity", node.identity);
    if (pci == nullptr || rdma == nullptr || identity == nullptr) continue;
    looked = judge_node(c, node, judge) || looked;
  }
  if (!looked) judge.skip("no RDMA card that GPUs could use carries the job's data");
}

// --- the catalogue ---

constexpr Page kDisabledPage{
    .meaning =
        "With GPUDirect RDMA a card reads and writes GPU memory itself. It needs the module "
        "nvidia_peermem, or DMA-BUF (the open NVIDIA module and Linux 5.12). Neither is there, so "
        "NCCL copies everything through the CPU's memory, at a fraction of the speed.",
    .confirm =
        "`lsmod | grep nvidia_peermem`; with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=NET,GRAPH NCCL "
        "prints `GPU Direct RDMA Disabled`, and channels lack `/GDRDMA`.",
    .fix =
        "`modprobe nvidia-peermem` on the host, also for containers, and at each boot by "
        "/etc/modules-load.d.",
    .verify = "NCCL_DEBUG=INFO prints channels `via NET/IB/0/GDRDMA`."};
constexpr Page kFarPage{
    .meaning =
        "NCCL uses GPUDirect RDMA where GPU and card stand below one PCIe root port (PIX, PXB). "
        "Here each pair is connected by way of the CPU (PHB) or of two (SYS). That works, but "
        "through the CPU's memory.",
    .confirm = "`nvidia-smi topo -m`.",
    .fix =
        "Put the card into a slot below the GPUs' switch. Where that cannot be done, measure with "
        "NCCL_NET_GDR_LEVEL=PHB: some platforms are fast enough.",
    .verify = "`nvidia-smi topo -m` shows PIX or PXB between a GPU and a card."};
constexpr Code kCodes[] = {{.id = "gpu-gdr-disabled",
                            .fault_class = FaultClass::gdr_disabled,
                            .worst = Severity::degraded,
                            .title = "GPUDirect RDMA is not possible",
                            .causes = {},
                            .page = kDisabledPage},
                           {.id = "gpu-nic-far",
                            .fault_class = FaultClass::topology_wrong_nic,
                            .worst = Severity::notice,
                            .title = "RDMA cards are far from the GPUs",
                            .causes = {},
                            .page = kFarPage}};

}  // namespace

extern const Check gpu_gdr{
    .title = "RDMA cards reach GPU memory", .codes = kCodes, .run = run, .needs = Needs::gpus};

}  // namespace distdoctor::checks
