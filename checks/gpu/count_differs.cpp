// The nodes of a job have equally many GPUs, of one model.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// "8 x NVIDIA H100 80GB HBM3", "none".
struct Stock {
  const NodeFacts* node;
  std::string text;
};

Stock stock_of(const NodeFacts& node) {
  std::map<std::string, int> models;
  for (const Gpu& gpu : node.gpu->gpus) {
    const bool amd = gpu.vendor == GpuVendor::amd;
    ++models[!gpu.model.empty() ? gpu.model : amd ? "AMD GPU" : "NVIDIA GPU"];
  }
  std::string text;
  for (const auto& [model, count] : models) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, model);
  }
  return {.node = &node, .text = text.empty() ? "none" : text};
}

void report(const std::vector<Stock>& stocks, const Usual<std::string>& usual, Judge& judge) {
  const auto odd = odd_ones_out(stocks, usual.value, &Stock::text);
  Finding finding{.code = "gpu-count-differs",
                  .severity = Severity::notice,
                  .certainty = Certainty::possible,
                  .symptom = Symptom::slow,
                  .summary = fmt::format("{} of {} nodes have other GPUs than {}", odd.size(),
                                         stocks.size(), usual.value)};
  for (const Stock& stock : odd) {
    finding.subjects.nodes.push_back(stock.node->host);
    finding.evidence.push_back({.node = stock.node->host,
                                .fact = "GPUs",
                                .observed = stock.text,
                                .expected = usual.value,
                                .context = std::string(slug(stock.node->context)),
                                .command = "nvidia-smi -L || rocm-smi"});
    finding.fix.push_back(by_hand(
        *stock.node,
        fmt::format("if {} should have the same GPUs: `dmesg -T | grep -iE 'nvrm|amdgpu|pcieport'` "
                    "tells of one that is lost; else give each node as many ranks as it has GPUs",
                    stock.node->host)));
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  std::vector<Stock> stocks;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (judge.see(node, "gpu", node.gpu) != nullptr) stocks.push_back(stock_of(node));
  }
  const auto usual = usual_value(stocks, &Stock::text);
  if (!usual || c.cluster.job.nccl == Use::no) return;
  if (odd_ones_out(stocks, usual->value, &Stock::text).empty()) return;
  report(stocks, *usual, judge);
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "Nodes of one job have different numbers or models of GPUs. That may be as it should be; "
        "but the slowest GPU sets the pace, and a launch that starts equally many ranks "
        "everywhere fails where there are fewer. A GPU that fell off the bus shows so, too.",
    .confirm = "`nvidia-smi -L` (`rocm-smi`) on each node.",
    .fix = "See why the node has fewer, or choose nodes that are alike.",
    .verify = "The command shows the same on all nodes."};
constexpr Code kCodes[] = {{.id = "gpu-count-differs",
                            .fault_class = FaultClass::one_slow_node,
                            .worst = Severity::notice,
                            .title = "Nodes have different GPUs",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_count_differs{
    .title = "All nodes have the same GPUs", .codes = kCodes, .run = run, .needs = Needs::gpus};

}  // namespace distdoctor::checks
