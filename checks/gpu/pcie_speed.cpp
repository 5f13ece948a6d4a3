// The PCIe link of a GPU at work runs at the speed that card and slot have. That of an idle GPU is
// slow to save power, so only what NVML shows at work is judged.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "nvml.h"
#include "slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// Computing most of the time, in one of the states in which the driver runs the link at full speed
// (P0; P2 on cards that are made for games).
bool is_at_work(const NvmlGpu& gpu) {
  constexpr int kBusy = 50;
  constexpr int kComputes = 2;
  return gpu.error.empty() && gpu.mig != true && gpu.busy_percent.value_or(0) >= kBusy &&
         gpu.performance_state && *gpu.performance_state <= kComputes;
}

struct Link {
  const NodeFacts* node;
  const PciDevice* gpu;
  int busy_percent;
  int state;  // P0 is the fastest
  double speed;
  double possible;  // for card and port
};

std::optional<Link> link_of(const NodeFacts& node, const NvmlGpu& answer) {
  const PciDevice* gpu = find_device(*node.pci, answer.pci);
  if (gpu == nullptr || !is_driven(*gpu) || !gpu->speed_gts || !gpu->max_speed_gts) {
    return std::nullopt;
  }
  const PciDevice* port = port_above(*node.pci, *gpu);
  if (port == nullptr || !port->max_speed_gts) return std::nullopt;
  return Link{.node = &node,
              .gpu = gpu,
              .busy_percent = answer.busy_percent.value_or(0),
              .state = answer.performance_state.value_or(0),
              .speed = *gpu->speed_gts,
              .possible = std::min(*gpu->max_speed_gts, *port->max_speed_gts)};
}

// Of the GPUs at work.
std::vector<Link> links_at_work(const NodeFacts& node, const Nvml& nvml) {
  std::vector<Link> links;
  for (const NvmlGpu* answer : gpus_that(nvml, is_at_work)) {
    if (const auto link = link_of(node, *answer)) links.push_back(*link);
  }
  return links;
}

bool others_are_faster(const ClusterFacts& cluster, const Link& slow) {
  return others_of_its_model(cluster, *slow.gpu, [&](const NodeFacts& node, const PciDevice& gpu) {
    const NvmlGpu* answer = find_answer(node, gpu.address);
    return answer != nullptr && is_at_work(*answer) && gpu.speed_gts.value_or(0) > slow.speed;
  });
}

void report(const Case& c, const Link& link, Judge& judge) {
  const bool odd = others_are_faster(c.cluster, link);
  const std::string& address = link.gpu->address;
  Finding finding{
      .code = "gpu-pcie-speed",
      .severity = capped_by_nccl(c.cluster.job, odd ? Severity::degraded : Severity::notice),
      .certainty = odd ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {link.node->host}, .devices = {device_name(*link.node, address)}},
      .summary = fmt::format("GPU {} of {} is at work, and its PCIe link runs at {} GT/s, where "
                             "card and slot have {}",
                             address, link.node->host, link.speed, link.possible)};
  finding.evidence.push_back(
      {.node = link.node->host,
       .fact = fmt::format("PCIe speed of GPU {}, {} % busy in P{}", address, link.busy_percent,
                           link.state),
       .observed = fmt::format("{} GT/s", link.speed),
       .expected = fmt::format("{} GT/s", link.possible),
       .command = fmt::format("nvidia-smi -i {} --query-gpu=utilization.gpu,pstate,"
                              "pcie.link.gen.current,pcie.link.gen.max --format=csv",
                              shell_quote(address))});
  finding.fix = {seat_again(*link.node)};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  bool looked = false;
  const bool told = each_told(c, judge, [&](const NodeFacts& node, const Nvml& nvml) {
    const Pci* pci = judge.see(node, "pci", node.pci);
    if (pci == nullptr || pci->virtual_machine) return;  // a guest's bus is made up
    for (const Link& link : links_at_work(node, nvml)) {
      looked = true;
      if (link.speed < link.possible) report(c, link, judge);
    }
  });
  if (told && !looked) {
    judge.skip("no GPU is seen at work, and the link of an idle one is slow on purpose");
  }
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "The GPU computes, and its PCIe link still runs at a lower generation than card and slot "
        "have: a riser or cable that is not good enough, dirt, a setting of the BIOS. Copies to "
        "and from this GPU are slower by that factor. An idle GPU lowers its link on purpose, and "
        "is not judged.",
    .confirm =
        "While the job runs: `nvidia-smi --query-gpu=pstate,pcie.link.gen.current,"
        "pcie.link.gen.max --format=csv`; `lspci -vv -s ADDRESS | grep -E 'LnkCap:|LnkSta:'` as "
        "root.",
    .fix = "Power off, seat the card again; then riser, cable and the slot's setting in the BIOS.",
    .verify = "The command shows the full generation while the job runs."};
constexpr Code kCodes[] = {{.id = "gpu-pcie-speed",
                            .fault_class = FaultClass::pcie_downgrade,
                            .worst = Severity::degraded,
                            .title = "A GPU's PCIe link is slow at work",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_pcie_speed{.title = "PCIe links of GPUs at work run at full speed",
                                  .codes = kCodes,
                                  .run = run,
                                  .needs = Needs::gpus};

}  // namespace distdoctor::checks
