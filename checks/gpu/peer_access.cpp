// Nobody has switched off direct access between GPUs in the driver.
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

// "Chipset not supported" and its kind are how machines are built; this one somebody has set.
bool is_switched_off(const NvmlPair& pair) {
  constexpr std::string_view kSet = "disabled by regkey";
  return pair.p2p_read == kSet || pair.p2p_write == kSet;
}

void judge_node(const NodeFacts& node, const Nvml& nvml, Judge& judge) {
  const auto count = std::ranges::count_if(nvml.pairs, is_switched_off);
  if (count == 0) return;
  const auto off = std::ranges::find_if(nvml.pairs, is_switched_off);
  Finding finding{.code = "gpu-p2p-switched-off",
                  .severity = Severity::notice,
                  .certainty = Certainty::possible,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("the driver of {} is set to deny direct access between "
                                         "GPUs ({} of {} pairs): NCCL goes by way of the host's "
                                         "memory",
                                         node.host, count, nvml.pairs.size())};
  finding.evidence.push_back({.node = node.host,
                              .fact = fmt::format("P2P between GPU {} and GPU {}", off->a, off->b),
                              .observed = "disabled by regkey",
                              .expected = "ok, or not supported",
                              .command = "nvidia-smi topo -p2p r; grep -r RegistryDwords "
                                         "/etc/modprobe.d /proc/driver/nvidia/params"});
  finding.fix = {by_hand(node,
                         "if nobody wants it so: take the option out of /etc/modprobe.d and reboot "
                         "(in a virtual machine it is the provider's choice)")};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return judge.skip("the job does not use NCCL");
  bool looked = false;
  const bool told = each_told(c, judge, [&](const NodeFacts& node, const Nvml& nvml) {
    looked = looked || std::ranges::any_of(
                           nvml.pairs, [](const NvmlPair& pair) { return !pair.p2p_read.empty(); });
    judge_node(node, nvml, judge);
  });
  if (told && !looked) judge.skip("no driver tells whether two GPUs reach each other");
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "The driver could let GPUs reach each other's memory, and a setting of its module, or of a "
        "hypervisor, denies it. NCCL then copies through the host's shared memory: right, but "
        "slower within the node.",
    .confirm = "`nvidia-smi topo -p2p r` shows DR (disabled by regkey).",
    .fix = "Remove the registry key from the module's options, and reboot.",
    .verify = "`nvidia-smi topo -p2p r` shows OK between the GPUs."};
constexpr Code kCodes[] = {{.id = "gpu-p2p-switched-off",
                            .fault_class = FaultClass::p2p_level,
                            .worst = Severity::notice,
                            .title = "Access between GPUs is switched off",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_peer_access{.title = "Access between GPUs is not switched off",
                                   .codes = kCodes,
                                   .run = run,
                                   .needs = Needs::gpus};

}  // namespace distdoctor::checks
