// No driver claims peer-to-peer access between GeForce cards that do not have it.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>
#include <distdoctor/workers.h>

#include "devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

bool is_geforce_40(const Gpu& gpu) {
  return gpu.model.find("GeForce RTX 40") != std::string::npos;
}

// 525 and 105 of "525.105.17".
std::pair<int, int> branch_of(std::string_view version) {
  const auto dot = version.find('.');
  if (dot == std::string_view::npos) return {};
  const auto rest = version.substr(dot + 1);
  return {number(version.substr(0, dot)).value_or(0),
          number(rest.substr(0, rest.find('.'))).value_or(0)};
}

// The first drivers of these cards said yes to cudaDeviceCanAccessPeer; 525.105 no longer does.
bool claims_peer_access(std::string_view driver) {
  const auto [branch, minor] = branch_of(driver);
  return (branch >= 520 && branch < 525) || (branch == 525 && minor < 105);
}

// What the driver itself was asked, if it was, counts more than its version.
bool denies_peer_access(const NodeFacts& node) {
  return node.nvml.known() && !node.nvml->pairs.empty() &&
         std::ranges::none_of(node.nvml->pairs,
                              [](const NvmlPair& pair) { return pair.p2p_read == "ok"; });
}

void judge_node(const Case& c, const NodeFacts& node, Judge& judge) {
  const auto cards = std::ranges::count_if(node.gpu->gpus, is_geforce_40);
  if (!claims_peer_access(node.gpu->nvidia_driver)) return;
  if (denies_peer_access(node) || peer_access_off(c.cluster, node)) return;
  Finding finding{.code = "gpu-consumer-p2p",
                  .severity = Severity::notice,
                  .certainty = Certainty::possible,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format(
                      "{} GeForce cards of {} have no peer-to-peer access over PCIe, but the "
                      "driver {} says that they do",
                      cards, node.host, node.gpu->nvidia_driver)};
  finding.evidence.push_back({.node = node.host,
                              .fact = "NVIDIA kernel module",
                              .observed = node.gpu->nvidia_driver,
                              .expected = "525.105 or newer",
                              .command = "head -1 /proc/driver/nvidia/version; nvidia-smi -L"});
  finding.fix = {{.node = "*",
                  .kind = Fix::Kind::env,
                  .env = {{"NCCL_P2P_DISABLE", "1"}},
                  .text = "NCCL then goes by way of shared memory, as it does with newer drivers"},
                 by_hand(node, fmt::format("install a newer NVIDIA driver on {}", node.host))};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return judge.skip("the job does not use NCCL");
  bool looked = false;
  for (const NodeFacts& node : c.cluster.nodes) {
    const GpuFacts* gpus = judge.see(node, "gpu", node.gpu);
    if (gpus == nullptr || std::ranges::count_if(gpus->gpus, is_geforce_40) < 2) continue;
    looked = true;
    judge_node(c, node, judge);
  }
  if (!looked) judge.skip("no node has two GeForce RTX 40 cards");
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "GeForce RTX 40 cards cannot access each other's memory over PCIe. The first drivers for "
        "them said that they can: NCCL believes it, and the first collective hangs or computes "
        "rubbish.",
    .confirm = "Run with NCCL_P2P_DISABLE=1: if the job no longer hangs, that is it.",
    .fix = "A driver of 525.105 or newer; until then NCCL_P2P_DISABLE=1.",
    .verify = "NCCL_DEBUG=INFO prints channels `via SHM` and the job runs."};
constexpr Code kCodes[] = {{.id = "gpu-consumer-p2p",
                            .fault_class = FaultClass::p2p_consumer_gpu,
                            .worst = Severity::notice,
                            .title = "The driver claims access between GeForce cards",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_consumer_p2p{.title = "GeForce drivers claim no access that the cards lack",
                                    .codes = kCodes,
                                    .run = run,
                                    .needs = Needs::gpus};

}  // namespace distdoctor::checks
