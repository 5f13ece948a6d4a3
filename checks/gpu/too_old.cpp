// Driver and NCCL are new enough for what the job brings: its CUDA, its GPUs.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>
#include <distdoctor/workers.h>

#include "devices.h"
#include "nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <compare>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// "12.4", "2.25.1": what is missing is 0. All zero: no version.
using Version = std::array<int, 3>;

Version parse_version(std::string_view text) {
  Version version{};
  for (int& part : version) {
    const auto dot = text.find('.');
    part = number(text.substr(0, dot)).value_or(0);
    if (dot == std::string_view::npos) break;
    text.remove_prefix(dot + 1);
  }
  return version;
}

constexpr Version kNone{};

// --- the driver, for CUDA ---

// "CUDA Compatibility" (docs.nvidia.com/deploy/cuda-compatibility): since 11.0 a driver runs all
// programs of its own major version and of older ones; before, of its own version and older ones.
bool runs(const Version& driver, const Version& program) {
  const bool minor_versions = program[0] >= 11;
  return minor_versions ? driver[0] >= program[0] : driver >= program;
}

// A container image may bring a libcuda of its own that reaches further (cuda-compat).
Severity driver_severity(const Case& c, const NodeFacts& node) {
  if (in_container(node) || c.cluster.job.nccl != Use::yes) return Severity::notice;
  return capped_by_context(Severity::blocker, node.context);
}

struct Program {
  std::string what;    // "PyTorch on node0"
  std::string cuda;    // that it was built for
  std::string advice;  // what else to install, without "or a newer NVIDIA driver"
  std::string_view command;
};

std::string oldest_driver(const Version& program) {
  return program[0] >= 11 ? fmt::format("{}.0", program[0])
                          : fmt::format("{}.{}", program[0], program[1]);
}

Finding driver_finding(const Case& c,
                       const NodeFacts& node,
                       const Nvml& nvml,
                       const Program& program) {
  const bool container = in_container(node);
  Finding finding{.code = "gpu-driver-too-old",
                  .severity = driver_severity(c, node),
                  .certainty = container ? Certainty::possible : Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} was built for CUDA {}, but the driver {} runs CUDA {} "
                                         "at most",
                                         program.what, program.cuda, nvml.driver, nvml.cuda)};
  const auto oldest = oldest_driver(parse_version(program.cuda));
  finding.evidence.push_back({.node = node.host,
                              .fact = "newest CUDA of the driver",
                              .observed = nvml.cuda,
                              .expected = oldest + " or newer",
                              .context = std::string(slug(node.context)),
                              .command = std::string(program.command)});
  finding.fix = {by_hand(node, program.advice + ", or a newer NVIDIA driver")};
  return finding;
}

// Whether it was reported: then what PyTorch brings need not be named, too.
bool judge_driver(
    const Case& c, const NodeFacts& node, const Nvml& nvml, const Program& program, Judge& judge) {
  const Version wanted = parse_version(program.cuda);
  const Version driver = parse_version(nvml.cuda);
  if (wanted == kNone || driver == kNone || runs(driver, wanted)) return false;
  judge.report(driver_finding(c, node, nvml, program));
  return true;
}

Program torch_of(const NodeFacts& node, const Nvml& nvml) {
  return {
      .what = "PyTorch on " + node.host,
      .cuda = node.software->torch_cuda,
      .advice = fmt::format("install a PyTorch that was built for CUDA {} or older", nvml.cuda),
      .command = "nvidia-smi | grep CUDA; python3 -c 'import torch; print(torch.version.cuda)'"};
}

Program nccl_of(const NodeFacts& node, const Nvml& nvml) {
  return {.what = fmt::format("NCCL {} on {} ({})", node.nccl_library->version, node.host,
                              node.nccl_library->path),
          .cuda = node.nccl_library->cuda,
          .advice = fmt::format("install an NCCL that was built for CUDA {} or older", nvml.cuda),
          .command = "nvidia-smi | grep CUDA"};
}

// --- NCCL, for the GPU ---

// Only what a public report or release notes bear out. Between the two some builds work.
struct Needed {
  Version capability;  // and newer
  Version maybe;
  Version surely;
  std::string_view text;
};
constexpr Needed kNeeded[] = {{{12, 0}, {2, 25, 1}, {2, 26, 2}, "2.26.2"}};  // NVIDIA/nccl#1637

const Needed* need_of(const NvmlGpu& gpu) {
  const Version capability = parse_version(gpu.capability);
  const auto found = std::ranges::find_if(
      kNeeded, [&](const Needed& row) { return capability >= row.capability; });
  return found == std::end(kNeeded) ? nullptr : &*found;
}

Evidence library_row(const NodeFacts& node, std::string expected) {
  return {.node = node.host,
          .fact = fmt::format("NCCL at {}", node.nccl_library->path),
          .observed = node.nccl_library->version,
          .expected = std::move(expected),
          .context = std::string(slug(node.context)),
          .command = "python3 -c 'import torch; print(torch.cuda.nccl.version())'"};
}

Fix newer_nccl(const NodeFacts& node, std::string_view version) {
  return by_hand(node, fmt::format("install a newer PyTorch, or NCCL {} or newer (`pip install -U "
                                   "nvidia-nccl-cu12`)",
                                   version));
}

void judge_gpu(const Case& c, const NodeFacts& node, const Nvml& nvml, Judge& judge) {
  const Version nccl = parse_version(node.nccl_library->version);
  for (const NvmlGpu& gpu : nvml.gpus) {
    const Needed* need = need_of(gpu);
    if (need == nullptr || nccl == kNone || nccl >= need->surely) continue;
    const bool sure = nccl < need->maybe;
    const bool matters = sure && c.cluster.job.nccl == Use::yes;
    const auto severity = matters ? Severity::degraded : Severity::notice;
    Finding finding{
        .code = "gpu-nccl-too-old",
        .severity = capped_by_context(severity, node.context),
        .certainty = sure ? Certainty::likely : Certainty::possible,
        .symptom = Symptom::crash,
        .subjects = {.nodes = {node.host}},
        .summary = fmt::format("NCCL {} on {} is older than its GPUs ({}, compute capability {})",
                               node.nccl_library->version, node.host, gpu.name, gpu.capability)};
    finding.evidence = {library_row(node, fmt::format("{} or newer", need->text))};
    finding.fix = {newer_nccl(node, need->text)};
    return judge.report(std::move(finding));
  }
}

// --- together ---

// Something of the job has a version that can be compared.
bool has_versions(const NodeFacts& node) {
  const bool torch = node.software.known() && !node.software->torch_cuda.empty();
  const bool nccl = node.nccl_library.known() && !node.nccl_library->version.empty();
  return torch || nccl;
}

void run(const Case& c, Judge& judge) {
  bool looked = false;
  const bool any = each_told(c, judge, [&](const NodeFacts& node, const Nvml& nvml) {
    looked = looked || has_versions(node);
    const bool told = judge.see(node, "software", node.software) != nullptr &&
                      judge_driver(c, node, nvml, torch_of(node, nvml), judge);
    if (judge.see(node, "nccl_library", node.nccl_library) == nullptr) return;
    if (!told) judge_driver(c, node, nvml, nccl_of(node, nvml), judge);
    judge_gpu(c, node, nvml, judge);
  });
  if (any && !looked) judge.skip("neither PyTorch nor NCCL was found");
}

// --- the catalogue ---

constexpr Page kDriverPage{
    .meaning =
        "A CUDA program needs a driver of its own major version or newer: one built for CUDA 12 a "
        "driver 525 or newer, for CUDA 13 a driver 580 or newer. This one is older: `CUDA driver "
        "version is insufficient for CUDA runtime version`, or torch.cuda.is_available() is False "
        "and the job falls back to the CPU.",
    .confirm =
        "`nvidia-smi` (its head shows the newest CUDA) against `python3 -c 'import torch; "
        "print(torch.version.cuda)'`.",
    .fix =
        "A PyTorch for an older CUDA (`pip install torch --index-url "
        "https://download.pytorch.org/whl/cu118`), or a newer driver. On data-centre GPUs the "
        "package cuda-compat bridges the gap.",
    .verify = "`python3 -c 'import torch; print(torch.cuda.is_available())'` prints True."};
constexpr Page kNcclPage{
    .meaning =
        "This NCCL was made before this GPU and has no code for it: kernels fail to load, or "
        "collectives hang or fail at the first call.",
    .confirm =
        "`python3 -c 'import torch; print(torch.cuda.nccl.version())'` and `nvidia-smi --query-gpu="
        "compute_cap --format=csv`.",
    .fix = "A newer PyTorch, which brings a newer NCCL; or `pip install -U nvidia-nccl-cu12`.",
    .verify = "The job's first all-reduce returns; NCCL_DEBUG=VERSION shows the newer one."};
constexpr Code kCodes[] = {{.id = "gpu-driver-too-old",
                            .fault_class = FaultClass::driver_mismatch,
                            .worst = Severity::blocker,
                            .title = "The driver is too old for the CUDA of PyTorch or NCCL",
                            .causes = {},
                            .page = kDriverPage},
                           {.id = "gpu-nccl-too-old",
                            .fault_class = FaultClass::nccl_too_old,
                            .worst = Severity::degraded,
                            .title = "NCCL is too old for the GPU",
                            .causes = {},
                            .page = kNcclPage}};

}  // namespace

extern const Check gpu_too_old{
    .title = "Driver and NCCL are new enough", .codes = kCodes, .run = run, .needs = Needs::gpus};

}  // namespace distdoctor::checks
