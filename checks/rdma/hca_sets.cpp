// All nodes take RDMA ports of the same number, kind and speed.
#include <distdoctor/check.h>

#include "rails.h"

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

// "mlx5_0:1+mlx5_1:1" where NCCL makes one device of two, at the place of the first.
std::vector<std::string> names(const RdmaNode& one) {
  std::vector<std::string> all;
  for (const HcaChoice& hca : one.hcas->used) {
    const std::string name = port_text(hca.device, hca.port);
    const auto has = [&](const auto& ports) {
      return std::ranges::find(ports, name) != ports.end();
    };
    const auto group = std::ranges::find_if(one.hcas->merged, has);
    if (group == one.hcas->merged.end()) {
      all.push_back(name);
    } else if (group->front() == name) {
      all.push_back(fmt::format("{}", fmt::join(*group, "+")));
    }
  }
  return all;
}

// Ports of one kind on one side and of the other kind alone on the other: "Attempted to connect
// incompatible devices", or NET/IB against NET/Socket.
bool cannot_meet(const Rails& odd, const Rails& usual) {
  if (odd.count.empty() || usual.count.empty()) return true;
  return std::ranges::none_of(odd.count,
                              [&](const auto& layer) { return usual.count.contains(layer.first); });
}

// What a login may open says little of what the job may.
Severity capped_by_world(Severity severity, const RdmaNode& one) {
  const bool opened = std::ranges::none_of(
      one.hcas->left_out, [](const HcaLeftOut& hca) { return hca.why == HcaPassed::not_usable; });
  return opened ? severity : capped_by_context(severity, one.node->context);
}

Evidence evidence_of(const Rails& rails, const std::string& expected) {
  const auto all = names(*rails.one);
  const std::string list = all.empty() ? "" : fmt::format(" ({})", fmt::join(all, ", "));
  return {.node = rails.one->node->host,
          .fact = "nccl.hcas",
          .observed = rails.text() + list,
          .expected = expected,
          .command = "rdma link; " + see_setting(*rails.one->prediction, "NCCL_IB_HCA")};
}

void judge_rails(const Case& c, const Rails& odd, const Rails& usual, bool clear, Judge& judge) {
  const bool never = cannot_meet(odd, usual);
  const Severity severity = capped(c, never ? Severity::blocker : Severity::degraded);
  Finding finding{.code = "rdma-hca-sets-differ",
                  .severity = capped_by_world(capped_by_world(severity, *odd.one), *usual.one),
                  .certainty = clear ? Certainty::likely : Certainty::possible,
                  .symptom = never ? Symptom::hang : Symptom::slow,
                  .subjects = {.nodes = {odd.one->node->host}},
                  .summary = fmt::format("NCCL takes {} on {}, and {} on {}", odd.text(),
                                         odd.one->node->host, usual.text(), usual.one->node->host)};
  finding.evidence = {evidence_of(odd, usual.text())};
  if (!clear) {  // of two nodes neither is the odd one
    finding.subjects.nodes.push_back(usual.one->node->host);
    finding.evidence.push_back(evidence_of(usual, odd.text()));
  }
  finding.fix = {{.node = "*",
                  .kind = Fix::Kind::manual,
                  .text = "bring the missing ports up, or name in NCCL_IB_HCA on each node the "
                          "ports that have a partner on all others"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (one_alone(nodes, judge) || all_unused(nodes, judge)) return;
  const Rates rates = rates_of(nodes, judge);
  std::vector<Rails> all;
  for (const RdmaNode& one : nodes) all.push_back(rails_of(one, rates));
  const auto usual = usual_value(all, &Rails::kinds);
  if (!usual) return;
  const Rails& example = *std::ranges::find(all, usual->value, &Rails::kinds);
  for (const Rails& rails : all) {
    if (rails.kinds != usual->value) judge_rails(c, rails, example, usual->clear, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "The nodes do not take the same number of RDMA ports, or ports of another kind or speed. "
        "What the ports are called does not matter. With fewer or slower ones on a node all wait "
        "for it; where one node has InfiniBand alone and another RoCE alone, or none, their ranks "
        "cannot connect at all (`NET/IB : Attempted to connect incompatible devices`).",
    .confirm =
        "NCCL_DEBUG=INFO prints `NET/IB : Using [0]mlx5_0:1/IB ...` on each node; `ibstat` shows "
        "rate and state of each port.",
    .fix =
        "Bring the missing ports up; where nodes are built differently, name in NCCL_IB_HCA what "
        "they have in common.",
    .verify = "The `NET/IB : Using` lines of all nodes have as many entries of the same kind."};
constexpr std::string_view kCauses[] = {"net-slow-interface"};
constexpr Code kCodes[] = {{.id = "rdma-hca-sets-differ",
                            .fault_class = FaultClass::hca_set_mismatch,
                            .worst = Severity::blocker,
                            .title = "The nodes take different sets of RDMA ports",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check rdma_hca_sets{.title = "All nodes take the same kind and number of RDMA ports",
                                 .codes = kCodes,
                                 .run = run,
                                 .needs = Needs::rdma};

}  // namespace distdoctor::checks
