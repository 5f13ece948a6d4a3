// The NVSwitch reduces (NVLink SHARP).
#include <distdoctor/check.h>
#include <distdoctor/judge.h>

#include "isolations.h"

#include <fmt/format.h>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

void add_fabric(const NodeFacts& node, Finding& finding) {
  if (!node.nvml.known()) return;
  for (const NvmlGpu& gpu : node.nvml->gpus) {
    const bool fine = gpu.fabric_state.empty() || gpu.fabric_state == "not supported" ||
                      (gpu.fabric_state == "completed" && gpu.fabric_status == "success");
    if (fine) continue;
    finding.evidence.push_back(
        {.node = node.host,
         .fact = fmt::format("NVSwitch fabric of GPU {}", gpu.index),
         .observed = gpu.fabric_state + (gpu.fabric_status.empty() ? "" : ", " + gpu.fabric_status),
         .expected = "completed, success",
         .command = "nvidia-smi -q | grep -A3 Fabric"});
    return;  // the others say the same
  }
}

void report(const Case& c, const Isolation& found, Judge& judge) {
  Finding finding = about(c, found, "collective-nvls-broken",
                          fmt::format("reduction in the NVSwitch (NVLS){} {}{}", where_text(found),
                                      ailment_text(found), speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  add_workaround(
      found, "all-reduces of large messages then reach about three quarters of the speed", finding);
  for (const NodeFacts* node : nodes_of(c, found)) {
    add_fabric(*node, finding);
    if (found.ailment == Ailment::slow) continue;
    finding.fix.push_back(by_hand(
        node->host,
        "while no process uses a GPU of the node, since it ends what does: `systemctl restart "
        "nvidia-fabricmanager` as root, on the host; where it does not help, a reboot. Its version "
        "has to be the driver's"));
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Isolation* found : isolations_of(c, {Layer::nvls})) report(c, *found, judge);
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "With NVSwitches of the third generation the switch itself adds up (NVLink SHARP). That "
        "needs multicast memory, which the fabric manager sets up. The same all-reduce does not "
        "work with it, and works with NCCL_NVLS_ENABLE=0; both were run twice. A fabric manager "
        "that is not running, of another version than the driver, or in a stale state is the "
        "usual cause.",
    .confirm =
        "`systemctl status nvidia-fabricmanager`, `nvidia-smi -q | grep -A3 Fabric`; "
        "all_reduce_perf "
        "with and without NCCL_NVLS_ENABLE=0.",
    .fix =
        "Restart nvidia-fabricmanager while the GPUs are idle, or the node. NCCL_NVLS_ENABLE=0 "
        "until then.",
    .verify = "NCCL_DEBUG=INFO prints NVLS channels and the all-reduce works."};
constexpr Code kCodes[] = {{.id = "collective-nvls-broken",
                            .fault_class = FaultClass::fabric_manager,
                            .worst = Severity::blocker,
                            .title = "Reduction in the NVSwitch is broken",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check collective_nvls{
    .title = "The NVSwitch reduces", .codes = kCodes, .run = run, .needs = Needs::runs};

}  // namespace distdoctor::checks
