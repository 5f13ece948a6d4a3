// The NVIDIA kernel module and libcuda are of one version, and of the same one on all nodes.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>
#include <distdoctor/xid.h>

#include "devices.h"
#include "nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// "NVRM: API mismatch: the client has the version 550.90.07, but": some program has met it since
// the module was loaded.
bool met_by_a_program(const NodeFacts& node) {
  if (!node.kernel_log.known()) return false;
  for (const KernelLine& line : node.kernel_log->lines | std::views::reverse) {
    if (is_driver_load(line)) return false;
    if (line.text.find("NVRM: API mismatch") != std::string::npos &&
        line.text.find("version " + node.gpu->nvidia_library) != std::string::npos) {
      return true;
    }
  }
  return false;
}

// "Driver/library version mismatch" of nvmlInit. The library that answered so is the one that we
// would load: a job in a container may load another.
bool met_by_us(const NodeFacts& node) {
  constexpr int kMismatch = 18;  // NVML_ERROR_LIB_RM_VERSION_MISMATCH
  return node.nvml.known() && node.nvml->error_code == kMismatch;
}

// Some library that is, or is not, of the module's version.
bool has_library(const NodeFacts& node) {
  return !node.gpu->nvidia_library.empty() || (node.nvml.known() && !node.nvml->library.empty());
}

Fix make_one_version(const NodeFacts& node) {
  if (in_container(node)) {
    return by_hand(node,
                   "take the NVIDIA driver's libraries out of the image: the container toolkit "
                   "brings those of the host");
  }
  return by_hand(node, fmt::format("drain {} and reboot it: the driver was updated, but the old "
                                   "module is still loaded",
                                   node.host));
}

std::string summary_of(const NodeFacts& node) {
  const std::string& library = node.gpu->nvidia_library;
  const bool differ = !library.empty() && library != node.gpu->nvidia_driver;
  return fmt::format("{} has the NVIDIA kernel module {} loaded, but {}", node.host,
                     node.gpu->nvidia_driver,
                     differ ? "libcuda " + library : "libraries of another version");
}

void add_evidence(const NodeFacts& node, Finding& finding) {
  const std::string& module = node.gpu->nvidia_driver;
  const std::string& library = node.gpu->nvidia_library;
  if (!library.empty() && library != module) {
    finding.evidence.push_back(
        {.node = node.host,
         .fact = "libcuda.so.1",
         .observed = library,
         .expected = module,
         .context = std::string(slug(node.context)),
         .command = "cat /proc/driver/nvidia/version; ldconfig -p | grep libcuda"});
  }
  if (!met_by_us(node)) return;
  finding.evidence.push_back({.node = node.host,
                              .fact = "nvmlInit",
                              .observed = node.nvml->error,
                              .expected = "success",
                              .context = std::string(slug(node.context)),
                              .command = "nvidia-smi"});
}

void judge_node(const Case& c, const NodeFacts& node, Judge& judge) {
  const std::string& module = node.gpu->nvidia_driver;
  const std::string& library = node.gpu->nvidia_library;
  const bool differ = !library.empty() && module != library;
  if (module.empty() || (!differ && !met_by_us(node))) return;
  const bool met = differ && met_by_a_program(node);
  const auto severity = c.cluster.job.nccl == Use::yes ? Severity::blocker : Severity::notice;
  Finding finding{.code = "gpu-driver-mismatch",
                  .severity = met ? severity : capped_by_context(severity, node.context),
                  .certainty = met || met_by_us(node) ? Certainty::proved : Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = summary_of(node)};
  add_evidence(node, finding);
  finding.fix = {make_one_version(node)};
  judge.report(std::move(finding));
}

void judge_nodes(const std::vector<const NodeFacts*>& nodes, Judge& judge) {
  const auto driver = [](const NodeFacts* node) { return node->gpu->nvidia_driver; };
  const auto usual = usual_value(nodes, driver);
  if (!usual) return;
  const auto odd = odd_ones_out(nodes, usual->value, driver);
  if (odd.empty()) return;
  Finding finding{.code = "gpu-driver-differs",
                  .severity = Severity::notice,
                  .certainty = Certainty::possible,
                  .symptom = Symptom::crash,
                  .summary = fmt::format("{} of {} nodes do not have the NVIDIA driver {}",
                                         odd.size(), nodes.size(), usual->value)};
  for (const NodeFacts* node : odd) {
    finding.subjects.nodes.push_back(node->host);
    finding.evidence.push_back({.node = node->host,
                                .fact = "NVIDIA kernel module",
                                .observed = node->gpu->nvidia_driver,
                                .expected = usual->value,
                                .command = "cat /proc/driver/nvidia/version"});
    finding.fix.push_back(by_hand(
        *node, fmt::format("when {} is next maintained, give it the driver {}; until then look "
                           "here first if only this node fails",
                           node->host, usual->value)));
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  std::vector<const NodeFacts*> with_driver;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (judge.see(node, "gpu", node.gpu) == nullptr || node.gpu->nvidia_driver.empty()) continue;
    judge_node(c, node, judge);
    with_driver.push_back(&node);
  }
  if (with_driver.empty()) judge.skip(kNoDriver);
  if (with_driver.size() == 1 && !has_library(*with_driver.front())) {
    judge.skip("no library of the driver was found to compare with");
  }
  judge_nodes(with_driver, judge);
}

// --- the catalogue ---

constexpr Page kMismatchPage{
    .meaning =
        "The NVIDIA driver has two halves, a kernel module and libraries, which must be of one "
        "version. They are not: the packages were updated and the old module is still loaded, or "
        "an image brings libraries of its own. CUDA and nvidia-smi then fail: `Driver/library "
        "version mismatch`, error 803.",
    .confirm =
        "`cat /proc/driver/nvidia/version` against `ls -l $(ldconfig -p | awk '/libcuda.so.1/ "
        "{print $NF}')`; `dmesg | grep 'API mismatch'`.",
    .fix =
        "Reboot the node, or unload all nvidia modules and load them again while nothing uses "
        "them. In a container remove the driver's libraries from the image.",
    .verify = "`nvidia-smi` prints its table."};
constexpr Page kDiffersPage{
    .meaning =
        "Nodes of one job have different NVIDIA drivers. That works, as long as each is new enough "
        "for the program's CUDA; when a single node fails, it is the first difference to look at.",
    .confirm = "`cat /proc/driver/nvidia/version` on each node.",
    .fix = "Bring all nodes to one driver when they are next maintained.",
    .verify = "The command shows one version on all nodes."};
constexpr Code kCodes[] = {{.id = "gpu-driver-mismatch",
                            .fault_class = FaultClass::driver_mismatch,
                            .worst = Severity::blocker,
                            .title = "NVIDIA module and libraries are of two versions",
                            .causes = {},
                            .page = kMismatchPage},
                           {.id = "gpu-driver-differs",
                            .fault_class = FaultClass::driver_mismatch,
                            .worst = Severity::notice,
                            .title = "Nodes have different NVIDIA drivers",
                            .causes = {},
                            .page = kDiffersPage}};

}  // namespace

extern const Check gpu_driver_mismatch{.title = "NVIDIA drivers and their libraries agree",
                                       .codes = kCodes,
                                       .run = run,
                                       .needs = Needs::gpus};

}  // namespace distdoctor::checks
