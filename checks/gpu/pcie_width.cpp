// Each GPU has all PCIe lanes that it and its slot have. Speeds are gpu/pcie_speed's: they fall at
// idle.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// Lanes that the card and the port above both have; none where one does not say.
std::optional<int> possible_width(const Pci& pci, const PciDevice& gpu) {
  const PciDevice* port = port_above(pci, gpu);
  if (port == nullptr || !port->max_width || !gpu.max_width) return std::nullopt;
  return std::min(*gpu.max_width, *port->max_width);
}

struct Lanes {
  const NodeFacts* node;
  const PciDevice* gpu;
  int width;
  int possible;
};

// Those whose lanes are known; of them some may be narrow.
std::vector<Lanes> known_gpus(const NodeFacts& node) {
  std::vector<Lanes> all;
  for (const PciDevice* gpu : devices_that(*node.pci, is_driven)) {
    const auto possible = possible_width(*node.pci, *gpu);
    if (possible && gpu->width) {
      all.push_back({.node = &node, .gpu = gpu, .width = *gpu->width, .possible = *possible});
    }
  }
  return all;
}

void report(const Case& c, const Lanes& narrow, Judge& judge) {
  const auto& [node, gpu, width, possible] = narrow;
  const bool odd =
      others_of_its_model(c.cluster, *gpu, [&](const NodeFacts&, const PciDevice& other) {
        return other.width.value_or(0) > narrow.width;
      });
  Finding finding{
      .code = "gpu-pcie-width",
      .severity = capped_by_nccl(c.cluster.job, odd ? Severity::degraded : Severity::notice),
      .certainty = odd ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {node->host}, .devices = {device_name(*node, gpu->address)}},
      .summary = fmt::format("GPU {} of {} uses {} of {} PCIe lanes", gpu->address, node->host,
                             width, possible)};
  finding.evidence.push_back({.node = node->host,
                              .fact = fmt::format("PCIe lanes of GPU {}", gpu->address),
                              .observed = fmt::to_string(width),
                              .expected = fmt::to_string(possible),
                              .command = fmt::format("lspci -vv -s {} | grep -E 'LnkCap:|LnkSta:'",
                                                     shell_quote(gpu->address))});
  finding.fix = {seat_again(*node)};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  bool looked = false;
  for (const NodeFacts& node : c.cluster.nodes) {
    const Pci* pci = judge.see(node, "pci", node.pci);
    if (pci == nullptr || pci->virtual_machine) continue;  // a guest's bus is made up
    for (const Lanes& link : known_gpus(node)) {
      looked = true;
      if (link.width < link.possible) report(c, link, judge);
    }
  }
  if (!looked) judge.skip("no bus tells how many lanes its GPUs use");
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "GPU and slot both have more PCIe lanes than the link between them uses: a card that is "
        "not seated well, dirt, a bad riser. Copies to and from this GPU are slower by that "
        "factor, "
        "and all ranks wait for it.",
    .confirm =
        "`lspci -vv -s ADDRESS | grep -E 'LnkCap:|LnkSta:'` as root shows `Width x8 (downgraded)`; "
        "`nvidia-smi -q | grep -A 6 'Link Width'`. The speed may be low: it falls at idle.",
    .fix = "Power off, seat the card again; then slot, riser and BIOS (bifurcation).",
    .verify = "The commands show the full width."};
constexpr Code kCodes[] = {{.id = "gpu-pcie-width",
                            .fault_class = FaultClass::pcie_downgrade,
                            .worst = Severity::degraded,
                            .title = "A GPU uses too few PCIe lanes",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_pcie_width{
    .title = "GPUs use all their PCIe lanes", .codes = kCodes, .run = run, .needs = Needs::gpus};

}  // namespace distdoctor::checks
