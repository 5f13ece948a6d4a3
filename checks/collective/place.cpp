// No node, no GPU and no link between two is bad, or holds up the others.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>

#include "isolations.h"

#include <fmt/format.h>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

// --- what the facts tell of a GPU ---

const NvmlGpu* nvml_gpu(const NodeFacts& node, int device) {
  if (!node.nvml.known()) return nullptr;
  const auto found = std::ranges::find(node.nvml->gpus, device, &NvmlGpu::index);
  return found == node.nvml->gpus.end() ? nullptr : &*found;
}

void add_health(const Case& c, const RunPlace& place, Finding& finding) {
  const NodeFacts* node = find_node(c.cluster, place.node);
  const NvmlGpu* gpu = node == nullptr ? nullptr : nvml_gpu(*node, place.device);
  if (gpu == nullptr) return;
  const auto add = [&](const char* fact, std::string observed, const char* expected) {
    finding.evidence.push_back({.node = node->host,
                                .fact = fmt::format("{} of GPU {}", fact, gpu->index),
                                .observed = std::move(observed),
                                .expected = expected,
                                .command = fmt::format("nvidia-smi -q -i {}", gpu->index)});
  };
  const auto errors = gpu->ecc_uncorrected.value_or(0);
  if (errors > 0) add("uncorrectable memory errors", std::to_string(errors), "0");
  if (!gpu->throttle.empty()) add("clocks", "held down: " + gpu->throttle.front(), "not held down");
  if (!gpu->error.empty()) add("state", gpu->error, "readable");
}

// --- findings ---

// Two ends, tested with each other only, share the blame.
bool only_with_each_other(const Case& c, const Isolation& found) {
  return c.cluster.nodes.size() == 2 && found.places.size() == 2 && found.places.front().device < 0;
}

void report_link(const Case& c, const Isolation& found, Judge& judge) {
  const std::string ends =
      fmt::format("{} and {}", place_text(found.places.front()), place_text(found.places.back()));
  const bool unsure = only_with_each_other(c, found);
  Finding finding =
      about(c, found, "collective-link-bad",
            unsure ? fmt::format("a collective of {} {}, though each works alone: one of them or "
                                 "what lies between; they were tested with each other only",
                                 ends, ailment_text(found))
                   : fmt::format("a collective of {} {}, though each works with others: it is "
                                 "what lies between{}",
                                 ends, ailment_text(found), speeds_text(found)));
  if (found.places.front().node != found.places.back().node) {
    finding.subjects.pairs = {{found.places.front().node, found.places.back().node}};
  }
  if (!add_proof(c, found, finding)) return;
  finding.fix = {by_hand(
      "*", unsure ? std::string("add a third node to --peers: it tells which of the two it is")
                  : fmt::format("look at what connects {}: cables, switch ports, NVLinks "
                                "(`nvidia-smi nvlink -e`)",
                                ends))};
  judge.report(std::move(finding));
}

Fix leave_out(const RunPlace& place) {
  if (place.device < 0) {
    return by_hand(place.node, "until it is mended: run without this node");
  }
  return by_hand(place.node, fmt::format("until it is mended: leave GPU {} out "
                                         "(CUDA_VISIBLE_DEVICES), or the node",
                                         place.device));
}

Fix look_at(const RunPlace& place) {
  return {.node = place.node,
          .kind = Fix::Kind::shell,
          .command = "dmesg -T | grep -E 'Xid|AER'; nvidia-smi -q -d ECC,ROW_REMAPPER,PERFORMANCE",
          .text = "as root; what it shows decides between a reset, a reboot and a repair"};
}

// CUDA did not start there for want of the NVSwitch fabric.
bool lacks_fabric(const Case& c, const Isolation& found) {
  const Experiment* sick = proof_run(c, found, 0);
  if (sick == nullptr) return false;
  return std::ranges::any_of(sick->ranks, [&](const RankRun& rank) {
    const bool there = std::ranges::any_of(found.places, [&](const RunPlace& place) {
      return place.node == rank.place.node &&
             (place.device < 0 || place.device == rank.place.device);
    });
    return there && (rank.error.find(kNoFabric) != std::string::npos ||
                     rank.error.find(kNoFabricName) != std::string::npos);
  });
}

std::string summary_of(const Isolation& found) {
  const std::string where = where_text(found);
  if (found.layer == Layer::straggler) {
    return fmt::format(
        "the part of the ranks{} takes more than twice as long as that of the "
        "others{}",
        where, speeds_text(found));
  }
  return fmt::format("every collective{} {}, and the others work{}", where, ailment_text(found),
                     is_slow(found) ? " at speed" + speeds_text(found) : "");
}

const char* code_of(const Isolation& found) {
  if (found.layer == Layer::straggler) return "collective-straggler";
  if (is_slow(found)) return "collective-place-slow";
  return found.layer == Layer::gpu ? "collective-gpu-bad" : "collective-node-bad";
}

void report_no_fabric(const Case& c, const Isolation& found, Judge& judge) {
  Finding finding =
      about(c, found, "collective-node-no-fabric",
            fmt::format("no collective starts{}: its GPUs wait for the NVSwitch fabric (CUDA error "
                        "802)",
                        where_text(found)));
  if (!add_proof(c, found, finding)) return;
  for (const RunPlace& place : found.places) {
    finding.fix.push_back(by_hand(place.node, std::string(kStartFabric)));
    finding.fix.push_back(leave_out(place));
  }
  judge.report(std::move(finding));
}

void report_place(const Case& c, const Isolation& found, Judge& judge) {
  if (lacks_fabric(c, found)) return report_no_fabric(c, found, judge);
  Finding finding = about(c, found, code_of(found), summary_of(found));
  if (!add_proof(c, found, finding)) return;
  for (const RunPlace& place : found.places) {
    add_health(c, place, finding);
    if (find_node(c.cluster, place.node) == nullptr) continue;
    finding.fix.push_back(look_at(place));
    finding.fix.push_back(leave_out(place));
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Isolation* found : isolations_of(c, {Layer::link})) {
    if (found->places.size() == 2) report_link(c, *found, judge);
  }
  for (const Isolation* found : isolations_of(c, {Layer::node, Layer::gpu, Layer::straggler})) {
    if (!found->places.empty()) report_place(c, *found, judge);
  }
}

// --- the catalogue ---

constexpr std::string_view kConfirm =
    "all_reduce_perf of nccl-tests on that place alone, with a partner that is known to be good, "
    "and on all the others.";
constexpr std::string_view kVerify = "The all-reduce over all nodes works at speed.";
constexpr Page kGpuPage{
    .meaning =
        "Whatever is switched off, the all-reduce does not work with this GPU, and works with all "
        "the others; both were run twice. The GPU, its slot or its memory is broken.",
    .confirm = kConfirm,
    .fix =
        "`dmesg` (Xid, AER), ECC counters, a reset (`nvidia-smi -r -i N` while nothing uses it), "
        "a repair. Until then leave it out.",
    .verify = kVerify};
constexpr Page kFabricPage{
    .meaning =
        "CUDA does not start on this node: error 802, `system not yet initialized`. Its GPUs hang "
        "on NVSwitches, and the fabric manager has not let them in: it does not run, is of another "
        "version than the driver, or met a fault.",
    .confirm =
        "`systemctl status nvidia-fabricmanager`; `nvidia-smi -q | grep -A 3 Fabric` (since "
        "Hopper); `dmesg -T | grep -i nvswitch`.",
    .fix = "nvidia-fabricmanager of exactly the driver's version, started on the drained node.",
    .verify = kVerify};
constexpr Page kNodePage{
    .meaning =
        "Whatever is switched off, the all-reduce does not work with this node, and works with all "
        "the others; both were run twice.",
    .confirm = kConfirm,
    .fix =
        "`distdoctor check` on that node, its kernel log, its network; run without it until "
        "then.",
    .verify = kVerify};
constexpr Page kLinkPage{
    .meaning =
        "Two places each work alone and, where that could be tried, with others, but not together. "
        "With two nodes only, no run can tell the one, the other and the wire apart.",
    .confirm = kConfirm,
    .fix =
        "What connects the two: cables, switch ports, routes, partitions. A third node tells "
        "more.",
    .verify = kVerify};
constexpr Page kSlowPage{
    .meaning =
        "With this place all are slow, since each round waits for the last; without it the same "
        "all-reduce is faster. Both were run twice.",
    .confirm = kConfirm,
    .fix = "Clocks (`nvidia-smi -q -d PERFORMANCE`), PCIe width, NVLinks, the NIC of that place.",
    .verify = kVerify};
constexpr Page kStragglerPage{
    .meaning =
        "In two rounds the same ranks took more than twice as long as the others for their own "
        "part, before data moved; without them the all-reduce is faster. A GPU that is held down "
        "(heat, power) or a busy CPU does that.",
    .confirm = kConfirm,
    .fix = "`nvidia-smi -q -d PERFORMANCE,CLOCK`, `top`, CPU binding of the ranks.",
    .verify = kVerify};
constexpr Code kCodes[] = {{.id = "collective-gpu-bad",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::blocker,
                            .title = "A GPU is bad",
                            .causes = {},
                            .page = kGpuPage},
                           {.id = "collective-node-bad",
                            .fault_class = FaultClass::unknown_hang,
                            .worst = Severity::blocker,
                            .title = "A node is bad",
                            .causes = {},
                            .page = kNodePage},
                           {.id = "collective-node-no-fabric",
                            .fault_class = FaultClass::fabric_manager,
                            .worst = Severity::blocker,
                            .title = "GPUs of a node wait for the NVSwitch fabric",
                            .causes = {},
                            .page = kFabricPage},
                           {.id = "collective-link-bad",
                            .fault_class = FaultClass::unknown_connect,
                            .worst = Severity::blocker,
                            .title = "Two places do not work together",
                            .causes = {},
                            .page = kLinkPage},
                           {.id = "collective-place-slow",
                            .fault_class = FaultClass::one_slow_node,
                            .worst = Severity::degraded,
                            .title = "One place holds up all",
                            .causes = {},
                            .page = kSlowPage},
                           {.id = "collective-straggler",
                            .fault_class = FaultClass::one_slow_node,
                            .worst = Severity::degraded,
                            .title = "Some ranks straggle",
                            .causes = {},
                            .page = kStragglerPage}};

}  // namespace

extern const Check collective_place{
    .title = "No node, GPU or link is bad", .codes = kCodes, .run = run, .needs = Needs::runs};

}  // namespace distdoctor::checks
