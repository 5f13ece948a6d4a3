// The nodes of a job have equally many GPUs, of one model.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "stock.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

struct Stock {
  const NodeFacts* node;
  std::string text;
};

// --- none, where others have some ---

Fix look_for_gpus(const NodeFacts& node) {
  if (in_container(node)) {
    return by_hand(node, fmt::format("give the container on {} its GPUs (docker --gpus all, "
                                     "nvidia.com/gpu in the pod's limits), or leave it out",
                                     node.host));
  }
  return by_hand(node, fmt::format("see whether {} is the node that is meant, and whether it has "
                                   "lost its GPUs: `lspci -d 10de:`, `dmesg -T | grep -iE "
                                   "'nvrm|xid|amdgpu'`; else leave it out of the job",
                                   node.host));
}

Severity severity_of_none(const Case& c, const NodeFacts& node) {
  if (!surely_uses_gpus(c.cluster.job)) return Severity::notice;
  return capped_by_container(Severity::blocker, node);
}

void report_none(const Case& c,
                 const std::vector<Stock>& none,
                 const std::vector<Stock>& some,
                 Judge& judge) {
  const auto usual = usual_value(some, &Stock::text);
  if (!usual) return;
  const std::string& others = usual->value;
  std::map<Severity, std::vector<const NodeFacts*>> by_severity;
  for (const Stock& stock : none) {
    by_severity[severity_of_none(c, *stock.node)].push_back(stock.node);
  }
  for (const auto& [severity, nodes] : by_severity) {
    Finding finding{
        .code = "gpu-none",
        .severity = severity,
        .certainty = surely_uses_gpus(c.cluster.job) ? Certainty::likely : Certainty::possible,
        .symptom = Symptom::crash,
        .summary = fmt::format("{} of {} nodes ha{} no GPU, where others have {}", nodes.size(),
                               none.size() + some.size(), nodes.size() == 1 ? "s" : "ve", others)};
    for (const NodeFacts* node : nodes) {
      finding.subjects.nodes.push_back(node->host);
      finding.evidence.push_back(stock_row(*node, others));
      finding.fix.push_back(look_for_gpus(*node));
    }
    judge.report(std::move(finding));
  }
}

// --- others ---

Finding difference(std::string summary) {
  return {.code = "gpu-count-differs",
          .severity = Severity::notice,
          .certainty = Certainty::possible,
          .symptom = Symptom::slow,
          .summary = std::move(summary)};
}

void report_odd(const std::vector<Stock>& stocks, const std::string& usual, Judge& judge) {
  const auto odd = odd_ones_out(stocks, usual, &Stock::text);
  Finding finding = difference(
      fmt::format("{} of {} nodes have other GPUs than {}", odd.size(), stocks.size(), usual));
  for (const Stock& stock : odd) {
    finding.subjects.nodes.push_back(stock.node->host);
    finding.evidence.push_back(stock_row(*stock.node, usual));
    finding.fix.push_back(by_hand(
        *stock.node,
        fmt::format("if {} should have the same GPUs: `dmesg -T | grep -iE 'nvrm|amdgpu|pcieport'` "
                    "tells of one that is lost; else give each node as many ranks as it has GPUs",
                    stock.node->host)));
  }
  judge.report(std::move(finding));
}

// Nobody is in the majority, so nobody is odd.
void report_sides(const std::vector<Stock>& stocks, Judge& judge) {
  std::map<std::string, std::vector<std::string>> sides;
  for (const Stock& stock : stocks) sides[stock.text].push_back(stock.node->host);
  std::vector<std::string> texts;
  for (const auto& [text, hosts] : sides) {
    texts.push_back(fmt::format("{} on {}", text, fmt::join(hosts, ", ")));
  }
  Finding finding =
      difference(fmt::format("the nodes have different GPUs: {}", fmt::join(texts, "; ")));
  for (const Stock& stock : stocks) {
    finding.subjects.nodes.push_back(stock.node->host);
    finding.evidence.push_back(stock_row(*stock.node, "the same on all nodes"));
  }
  finding.fix = {{.node = "*",
                  .kind = Fix::Kind::manual,
                  .text = "if all should have the same GPUs: `nvidia-smi -L` (`rocm-smi`) on each "
                          "tells which; else give each node as many ranks as it has GPUs"}};
  judge.report(std::move(finding));
}

void judge_others(const std::vector<Stock>& stocks, Judge& judge) {
  const auto usual = usual_value(stocks, &Stock::text);
  if (!usual || odd_ones_out(stocks, usual->value, &Stock::text).empty()) return;
  if (usual->clear) {
    report_odd(stocks, usual->value, judge);
  } else {
    report_sides(stocks, judge);
  }
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  std::vector<Stock> some;
  std::vector<Stock> none;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (judge.see(node, "gpu", node.gpu) == nullptr) continue;
    auto& stocks = shows_none(node) ? none : some;
    // Where device files or a library tell of GPUs that no driver lists, nobody can compare.
    if (shows_none(node) || !node.gpu->gpus.empty()) {
      stocks.push_back({.node = &node, .text = stock_text(*node.gpu)});
    }
  }
  if (c.cluster.job.nccl == Use::no) return judge.skip("the job does not use NCCL");
  if (!none.empty()) report_none(c, none, some, judge);
  judge_others(some, judge);
}

// --- the catalogue ---

constexpr std::string_view kVerify = "The command shows the same on all nodes.";
constexpr Page kPage{
    .meaning =
        "Nodes of one job have different numbers or models of GPUs. That may be as it should be; "
        "but the slowest GPU sets the pace, and a launch that starts equally many ranks "
        "everywhere fails where there are fewer. A GPU that fell off the bus shows so, too.",
    .confirm = "`nvidia-smi -L` (`rocm-smi`) on each node.",
    .fix = "See why the node has fewer, or choose nodes that are alike.",
    .verify = kVerify};
constexpr Page kNonePage{
    .meaning =
        "The node has no GPU at all, or shows none here, and other nodes of the job have some. A "
        "rank of NCCL needs one: `no CUDA-capable device is detected` there, and the others wait "
        "for it. A login node among the peers, a container without its GPUs, or GPUs that are "
        "gone.",
    .confirm = "`nvidia-smi -L` (`rocm-smi`) and `lspci -d 10de:` on the node.",
    .fix = "Take the node that was meant; give the container its GPUs; else leave the node out.",
    .verify = kVerify};
constexpr std::string_view kNoneCauses[] = {"gpu-fewer-than-expected", "gpu-too-few"};
constexpr Code kCodes[] = {{.id = "gpu-none",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::blocker,
                            .title = "A node has no GPU",
                            .causes = kNoneCauses,
                            .page = kNonePage},
                           {.id = "gpu-count-differs",
                            .fault_class = FaultClass::one_slow_node,
                            .worst = Severity::notice,
                            .title = "Nodes have different GPUs",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_count_differs{
    .title = "All nodes have the same GPUs", .codes = kCodes, .run = run, .needs = Needs::gpus};

}  // namespace distdoctor::checks
