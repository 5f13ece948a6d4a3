// NCCL finds out how GPUs and network cards hang together from /sys.
#include <distdoctor/check.h>

#include "devices.h"

#include <fmt/ranges.h>

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// Without the others NCCL does as well: a link that sysfs does not show counts as a virtual one.
bool tells_the_topology(const std::string& folder) {
  return folder == "/sys/bus/pci/devices" || folder == "/sys/devices/system/node";
}

// Then NCCL is told what hangs where.
bool has_topology_file(const Case& c, const NodeFacts& node) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  return prediction != nullptr && find_setting(*prediction, "NCCL_TOPO_FILE") != nullptr;
}

void judge_node(const Case& c, const NodeFacts& node, const World& world, Judge& judge) {
  std::vector<std::string> folders;
  std::ranges::copy_if(world.hidden, std::back_inserter(folders), tells_the_topology);
  if (folders.empty()) return;
  Finding finding{
      .code = "gpu-sys-hidden",
      .severity =
          capped_by_context(capped_by_nccl(c.cluster.job, Severity::degraded), node.context),
      .certainty = Certainty::likely,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("{} shows nothing of {}, so that NCCL cannot tell how GPUs "
                             "and network cards hang together",
                             node.host, fmt::join(folders, " and "))};
  for (const std::string& folder : folders) {
    finding.evidence.push_back({.node = node.host,
                                .fact = folder,
                                .observed = "empty",
                                .expected = "what the kernel has",
                                .context = std::string(slug(node.context)),
                                .command = fmt::format("ls {}; findmnt -R /sys", folder)});
  }
  finding.fix = {by_hand(node,
                         "let the job see /sys: start the container without a mount over /sys and "
                         "without masked paths (docker --security-opt systempaths=unconfined, -v "
                         "/sys:/sys:ro), or give NCCL_TOPO_FILE the machine's topology")};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return judge.skip("the job does not use NCCL");
  bool looked = false;
  for (const NodeFacts& node : c.cluster.nodes) {
    const World* world = judge.see(node, "world", node.world);
    const GpuFacts* gpus = judge.see(node, "gpu", node.gpu);
    if (world == nullptr || gpus == nullptr || gpus->gpus.empty()) continue;
    // WSL has no such tree, and NCCL knows that: host/wsl.
    if (world->platform == "wsl" || has_topology_file(c, node)) continue;
    looked = true;
    judge_node(c, node, *world, judge);
  }
  if (!looked) judge.skip("no NCCL here takes the topology from /sys");
}

constexpr Page kPage{
    .meaning =
        "NCCL reads PCI paths and NUMA nodes from /sys. Where a container shows none of it, each "
        "GPU seems to hang on one flat bus: `Could not find real path of ...`, a network card far "
        "from the GPU, no GPUDirect.",
    .confirm =
        "`ls /sys/bus/pci/devices /sys/devices/system/node` in the container, against the "
        "host.",
    .fix = "Start the container without a mount over /sys, or with `-v /sys:/sys:ro`.",
    .verify = "`ls /sys/bus/pci/devices` in the container lists the GPUs' addresses."};
constexpr std::string_view kCauses[] = {"gpu-nic-far"};
constexpr Code kCodes[] = {{.id = "gpu-sys-hidden",
                            .fault_class = FaultClass::container_gpu_visibility,
                            .worst = Severity::degraded,
                            .title = "/sys does not show the machine to NCCL",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check gpu_sys_hidden{
    .title = "/sys shows NCCL the machine", .codes = kCodes, .run = run, .needs = Needs::gpus};

}  // namespace distdoctor::checks
