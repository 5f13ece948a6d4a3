// Each GPU of a node is driven, and a job may open it.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include "devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// What one node's facts say, once all of them are known.
struct Seen {
  const NodeFacts* node;
  const GpuFacts* gpus;
  const Pci* pci;
  bool container;
};

// --- on the bus, but not driven ---

bool driven_somewhere(const ClusterFacts& cluster, const PciDevice& device) {
  return std::ranges::any_of(cluster.nodes, [&](const NodeFacts& node) {
    return node.pci.known() && std::ranges::any_of(node.pci->devices, [&](const PciDevice& other) {
             return other.vendor == device.vendor && other.device == device.device &&
                    other.driver == "nvidia";
           });
  });
}

// A model that this driver drives nowhere may be too old for it, as a card that only shows a
// desktop is; another driver has the GPU on purpose (vfio-pci: for a guest).
bool not_taken(const Case& c, const Seen& seen, const PciDevice& device) {
  return is_nvidia_gpu(device) && device.driver.empty() &&
         find_gpu(*seen.gpus, device.address) == nullptr && driven_somewhere(c.cluster, device);
}

// The bus still has it, the driver has let it go. A list without any GPU may be hidden from us.
bool let_go(const Seen& seen, const PciDevice& device) {
  return is_nvidia_gpu(device) && device.driver == "nvidia" &&
         count_of(*seen.gpus, GpuVendor::nvidia) > 0 &&
         find_gpu(*seen.gpus, device.address) == nullptr;
}

Finding lost_gpus(const Case& c, const Seen& seen, const std::vector<const PciDevice*>& lost) {
  const NodeFacts& node = *seen.node;
  const auto driven = count_of(*seen.gpus, GpuVendor::nvidia);
  const auto ranks = c.cluster.job.ranks_per_node;
  const bool in_the_way = ranks && std::cmp_greater(*ranks, driven);
  Finding finding{.code = "gpu-missing",
                  .severity = capped_by_nccl(c.cluster.job,
                                             in_the_way ? Severity::blocker : Severity::degraded),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("the driver has lost {} of {} GPUs of {}", lost.size(),
                                         driven + lost.size(), node.host)};
  for (const PciDevice* device : lost) {
    finding.subjects.devices.push_back(device_name(node, device->address));
    finding.evidence.push_back(
        {.node = node.host,
         .fact = fmt::format("GPU {}", device->address),
         .observed = device->driver.empty() ? "on the PCI bus without a driver"
                                            : "on the PCI bus, but not in /proc/driver/nvidia/gpus",
         .expected = "driven by nvidia",
         .command = fmt::format("lspci -k -s {}; nvidia-smi -L", shell_quote(device->address))});
  }
  finding.fix = {by_hand(
      node, fmt::format("`dmesg -T | grep -iE 'nvrm|xid'` says why; take {} out of the job, and "
                        "reboot it or take it off the power",
                        node.host))};
  return finding;
}

void judge_lost(const Case& c, const Seen& seen, Judge& judge) {
  if (seen.container || seen.gpus->nvidia_driver.empty()) return;
  const auto lost = devices_that(*seen.pci, [&](const PciDevice& device) {
    return not_taken(c, seen, device) || let_go(seen, device);
  });
  if (!lost.empty()) judge.report(lost_gpus(c, seen, lost));
}

// --- no driver at all ---

bool waits_for_a_driver(const PciDevice& device) {
  return is_nvidia_gpu(device) && (device.driver.empty() || device.driver == "nouveau");
}

void judge_driver(const Case& c, const Seen& seen, Judge& judge) {
  if (seen.container || !seen.gpus->nvidia_driver.empty()) return;
  const auto idle = devices_that(*seen.pci, waits_for_a_driver);
  const bool peers_have_it = std::ranges::any_of(c.cluster.nodes, [](const NodeFacts& node) {
    return node.gpu.known() && !node.gpu->nvidia_driver.empty();
  });
  if (idle.empty() || !peers_have_it) return;
  const NodeFacts& node = *seen.node;
  Finding finding{.code = "gpu-no-driver",
                  .severity = c.cluster.job.nccl == Use::yes ? Severity::blocker : Severity::notice,
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} has {}, but the NVIDIA driver is not loaded there",
                                         node.host, plural(idle.size(), "NVIDIA GPU"))};
  const std::string& driver = idle.front()->driver;
  finding.evidence.push_back({.node = node.host,
                              .fact = fmt::format("driver of GPU {}", idle.front()->address),
                              .observed = driver.empty() ? "none" : driver,
                              .expected = "nvidia",
                              .command = "cat /proc/driver/nvidia/version; lspci -k -d 10de:"});
  finding.fix = {{.node = node.host,
                  .kind = Fix::Kind::shell,
                  .command = "modprobe nvidia && nvidia-smi -L",
                  .text = "as root; if that fails, `dmesg -T | grep -i nvrm` says why: often the "
                          "module was not built for the running kernel"}};
  judge.report(std::move(finding));
}

// --- driven, but not for us ---

enum class Access : std::uint8_t { fine, absent, forbidden };

// Outside of a container the driver's own tool makes absent nodes at the first use.
Access access_of(const Seen& seen, const Gpu& gpu) {
  if (gpu.device_node.empty() || gpu.node_usable) return Access::fine;
  if (gpu.node_there) return Access::forbidden;
  return seen.container ? Access::absent : Access::fine;
}

// A container may have some of a host's GPUs on purpose: then they must suffice for its ranks.
bool too_few(const Case& c, std::size_t usable) {
  return usable == 0 || std::cmp_greater(c.cluster.job.ranks_per_node.value_or(0), usable);
}

// How containers are given GPUs, by their kind.
std::string give_gpus(const std::string& container, GpuVendor vendor) {
  const bool amd = vendor == GpuVendor::amd;
  if (container == "kubernetes") {
    return fmt::format("request the GPUs in the pod's limits ({})",
                       amd ? "amd.com/gpu" : "nvidia.com/gpu");
  }
  if (container == "apptainer") {
    return fmt::format("start it with `apptainer exec {}`", amd ? "--rocm" : "--nv");
  }
  if (amd) return "start the container with --device /dev/kfd --device /dev/dri";
  if (container == "enroot") return "start the container with NVIDIA_VISIBLE_DEVICES=all";
  return "start the container with --gpus all (NVIDIA Container Toolkit)";
}

Fix open_up(const Seen& seen, Access access, const Gpu& gpu) {
  const NodeFacts& node = *seen.node;
  if (access == Access::absent) {
    return by_hand(node, give_gpus(node.identity->container, gpu.vendor));
  }
  return by_hand(node, fmt::format("let the job's user open it: `ls -l {}` shows its owner and "
                                   "group; add the user to that group, and log in again",
                                   shell_quote(gpu.device_node)));
}

void judge_access(const Case& c, const Seen& seen, Judge& judge) {
  std::vector<std::pair<const Gpu*, Access>> shut;
  for (const Gpu& gpu : seen.gpus->gpus) {
    const Access access = access_of(seen, gpu);
    if (access != Access::fine) shut.emplace_back(&gpu, access);
  }
  const std::size_t usable = seen.gpus->gpus.size() - shut.size();
  if (shut.empty() || !too_few(c, usable)) return;
  const NodeFacts& node = *seen.node;
  const auto severity = c.cluster.job.nccl == Use::yes ? Severity::blocker : Severity::notice;
  Finding finding{.code = "gpu-not-visible",
                  .severity = capped_by_context(severity, node.context),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} of {} on {} cannot be opened {}", shut.size(),
                                         plural(seen.gpus->gpus.size(), "GPU"), node.host,
                                         seen.container ? "in this container" : "by this user")};
  for (const auto& [gpu, access] : shut) {
    finding.subjects.devices.push_back(device_name(node, gpu->pci));
    finding.evidence.push_back(
        {.node = node.host,
         .fact = gpu->device_node,
         .observed = access == Access::absent ? "absent" : "not permitted",
         .expected = "may be opened",
         .context = std::string(slug(node.context)),
         .command = fmt::format("ls -l {}; id", shell_quote(gpu->device_node))});
  }
  finding.fix = {open_up(seen, shut.front().second, *shut.front().first)};
  judge.report(std::move(finding));
}

// --- together ---

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    const GpuFacts* gpus = judge.see(node, "gpu", node.gpu);
    const Pci* pci = judge.see(node, "pci", node.pci);
    const Identity* identity = judge.see(node, "identity", node.identity);
    if (gpus == nullptr || pci == nullptr || identity == nullptr) continue;
    const Seen seen{
        .node = &node, .gpus = gpus, .pci = pci, .container = !identity->container.empty()};
    judge_lost(c, seen, judge);
    judge_driver(c, seen, judge);
    judge_access(c, seen, judge);
  }
}

// --- the catalogue ---

constexpr std::string_view kVerify =
    "`nvidia-smi -L` (`rocm-smi`) lists all GPUs of the node in the job's own world.";
constexpr Page kMissingPage{
    .meaning =
        "A GPU stands on the PCI bus, but the driver does not drive it, though it drives others "
        "of its kind: it failed to start, or has fallen off the bus. Ranks that were to use it "
        "end with `invalid device ordinal`.",
    .confirm =
        "`lspci -d 10de: | grep -c 3D` against `nvidia-smi -L | wc -l`; `dmesg -T | grep -i nvrm`.",
    .fix =
        "Take the node out, reboot it or take it off the power. If it comes back, see to the GPU.",
    .verify = kVerify};
constexpr Page kDriverPage{
    .meaning =
        "The node has NVIDIA GPUs, and its peers have the driver loaded, but it has not: after a "
        "kernel update without a matching module, or with nouveau in its place.",
    .confirm = "`cat /proc/driver/nvidia/version` fails; `lspci -k -d 10de:` shows no `nvidia`.",
    .fix = "`modprobe nvidia`; `dkms status` shows whether a module for `uname -r` was built.",
    .verify = kVerify};
constexpr Page kVisiblePage{
    .meaning =
        "The host drives the GPUs, but here their device nodes are absent or may not be opened: a "
        "container that was started without them, or a user outside of the group that may.",
    .confirm = "`ls -l /dev/nvidia* /dev/kfd /dev/dri/` and `id`, in the job's own world.",
    .fix =
        "`docker run --gpus all` (NVIDIA Container Toolkit), for AMD `--device /dev/kfd --device "
        "/dev/dri`; in Kubernetes a limit on nvidia.com/gpu. On a host: the group of the node "
        "(video, render).",
    .verify = kVerify};
constexpr std::string_view kFewer[] = {"gpu-count-differs", "gpu-fewer-than-expected", "gpu-none",
                                       "gpu-too-few"};
constexpr std::string_view kNoneDriven[] = {"gpu-count-differs", "gpu-fewer-than-expected",
                                            "gpu-none", "gpu-not-visible"};
constexpr std::string_view kShut[] = {"gpu-too-few"};
constexpr Code kCodes[] = {{.id = "gpu-missing",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::blocker,
                            .title = "A GPU of the node is not driven",
                            .causes = kFewer,
                            .page = kMissingPage},
                           {.id = "gpu-no-driver",
                            .fault_class = FaultClass::driver_mismatch,
                            .worst = Severity::blocker,
                            .title = "The NVIDIA driver is not loaded",
                            .causes = kNoneDriven,
                            .page = kDriverPage},
                           {.id = "gpu-not-visible",
                            .fault_class = FaultClass::container_gpu_visibility,
                            .worst = Severity::blocker,
                            .title = "GPUs cannot be opened here",
                            .causes = kShut,
                            .page = kVisiblePage}};

}  // namespace

extern const Check gpu_missing{.title = "All GPUs are driven and may be opened",
                               .codes = kCodes,
                               .run = run,
                               .needs = Needs::gpus};

}  // namespace distdoctor::checks
