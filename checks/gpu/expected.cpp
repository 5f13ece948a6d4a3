// Each node has as many GPUs as the site's policy says.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "stock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// Of those that the driver drives, where it was asked: they do not answer it.
std::size_t silent_gpus(const NodeFacts& node) {
  if (!node.nvml.known()) return 0;
  const auto silent = std::ranges::count_if(node.nvml->gpus, [](const NvmlGpu& gpu) {
    return gpu.error == "GPU is lost" || gpu.error == "GPU requires reset";
  });
  return std::min(node.gpu->gpus.size(), static_cast<std::size_t>(silent));
}

Finding fewer(const NodeFacts& node,
              const Threshold<int>& expected,
              std::size_t working,
              std::size_t silent) {
  Finding finding{
      .code = "gpu-fewer-than-expected",
      .severity = capped_by_container(Severity::blocker, node),
      .certainty = Certainty::likely,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("{} has {}, and {} says {}", node.host, plural(working, "working GPU"),
                             expected.origin, expected.value)};
  Evidence row = stock_row(node, fmt::format("{} GPUs ({})", expected.value, expected.origin));
  if (silent > 0) {
    row.observed += fmt::format(", {} of which do{} not answer", silent, silent == 1 ? "es" : "");
  }
  finding.evidence = {std::move(row)};
  finding.fix = {by_hand(
      node,
      fmt::format("`dmesg -T | grep -iE 'nvrm|xid|amdgpu|pcieport'` and `lspci -d 10de:` tell "
                  "of one that is lost: leave {} out of jobs until it is back; if the node "
                  "is of another kind, say so in the policy",
                  node.host))};
  return finding;
}

void judge_node(const NodeFacts& node, const Threshold<int>& expected, Judge& judge) {
  const std::size_t silent = silent_gpus(node);
  const std::size_t working = node.gpu->gpus.size() - silent;
  if (std::cmp_greater_equal(working, expected.value)) return;
  // Nobody counts what WSL has, or what only device files show.
  if (node.gpu->gpus.empty() && !shows_none(node)) return;
  judge.report(fewer(node, expected, working, silent));
}

void run(const Case& c, Judge& judge) {
  if (!c.expect.gpus_per_node) return judge.skip("no policy says how many GPUs a node has");
  for (const NodeFacts& node : c.cluster.nodes) {
    if (judge.see(node, "gpu", node.gpu) != nullptr) {
      judge_node(node, *c.expect.gpus_per_node, judge);
    }
  }
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "The policy file (`--config`) says with gpus_per_node in its section [expect] how many "
        "GPUs each node has. This one has fewer that its driver drives and that answer.",
    .confirm = "`nvidia-smi -L | wc -l` (`rocm-smi`) on the node, against the policy file.",
    .fix = "Take the node out, and see why: kernel log, PCI bus, power. Or mend the policy.",
    .verify = "`nvidia-smi -L` lists as many as the policy says."};
constexpr std::string_view kCauses[] = {"gpu-count-differs", "gpu-too-few"};
constexpr Code kCodes[] = {{.id = "gpu-fewer-than-expected",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::blocker,
                            .title = "A node has fewer GPUs than its site expects",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check gpu_expected{
    .title = "Nodes have the GPUs that the site expects", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
