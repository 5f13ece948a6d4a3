// All nodes would import one PyTorch, built for one CUDA.
#include <distdoctor/check.h>

#include "found.h"

namespace distdoctor::checks {
namespace {

using namespace software;  // NOLINT(google-build-using-namespace): the look-ups of this folder

constexpr const char* kCommand =
    "python3 -c 'import torch; print(torch.__version__, torch.version.cuda, torch.__file__)'";

// "2.8.0" of "2.8.0+cu128".
std::string release_of(const Found& one) {
  const std::string& version = one.software->torch;
  return version.substr(0, version.find('+'));
}

std::string build_of(const Found& one) {
  const Software& all = *one.software;
  if (!all.torch_hip.empty()) return "ROCm " + all.torch_hip;
  return all.torch_cuda.empty() ? "no GPU" : "CUDA " + all.torch_cuda;
}

struct Difference {
  const char* code;
  Severity worst;
  const char* what;  // "PyTorch"
  const char* then;
  std::string usual = {};
  std::vector<Found> odd = {};
};

void report(const Case& c, const std::vector<Found>& all, const Difference& of, Judge& judge) {
  Finding finding{.code = of.code,
                  .severity = capped(c, all, of.worst),
                  .certainty = one_live_job(all) ? Certainty::likely : Certainty::possible,
                  .symptom = Symptom::crash,
                  .summary = fmt::format("{} of {} nodes do not have {} {}: {}", of.odd.size(),
                                         all.size(), of.what, of.usual, of.then)};
  for (const Found& one : of.odd) {
    finding.subjects.nodes.push_back(one.host());
    finding.evidence.push_back(row_of(
        one, of.what,
        fmt::format("{}, {} ({})", one.software->torch, build_of(one), one.software->torch_path),
        of.usual, kCommand));
  }
  finding.fix = {by_hand("*",
                         "start the job from one environment (virtual environment, container "
                         "image, module) on all nodes")};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  auto all = found_on(c, judge);
  std::erase_if(all, [](const Found& one) { return one.software->torch.empty(); });
  if (all.size() < 2) judge.skip("PyTorch was found on fewer than two nodes");
  Difference release{
      .code = "software-torch-differs",
      .worst = Severity::degraded,
      .what = "PyTorch",
      .then = "ranks of two versions may not understand each other, or compute other things"};
  release.odd = differing(all, release_of, release.usual);
  if (!release.odd.empty()) return report(c, all, release, judge);
  Difference build{.code = "software-torch-build-differs",
                   .worst = Severity::notice,
                   .what = "PyTorch for",
                   .then =
                       "that works as long as each fits its driver; it often brings another "
                       "NCCL"};
  build.odd = differing(all, build_of, build.usual);
  if (!build.odd.empty()) report(c, all, build, judge);
}

// --- the catalogue ---

constexpr Page kDiffersPage{
    .meaning =
        "The nodes would import different versions of PyTorch. Their stores speak other dialects "
        "(2.0 and older against 2.2 and later: `Connection reset by peer`), pickled objects do not "
        "load, and ranks may run other operators in another order, which hangs.",
    .confirm = "`python3 -c 'import torch; print(torch.__version__)'` in the job, on each node.",
    .fix = "One environment for all nodes: a container image, or a shared file system.",
    .verify = "The command prints one version everywhere."};
constexpr Page kBuildPage{
    .meaning =
        "The nodes have one version of PyTorch in builds for different CUDA versions. That works "
        "where each fits its driver; NCCL, which comes with it, is often another one then.",
    .confirm = "`python3 -c 'import torch; print(torch.version.cuda)'` on each node.",
    .fix = "Install the same wheel on all nodes.",
    .verify = "The command prints one version everywhere."};
constexpr std::string_view kCauses[] = {"software-nccl-version-differs"};
constexpr Code kCodes[] = {{.id = "software-torch-differs",
                            .fault_class = FaultClass::nccl_version_mismatch,
                            .worst = Severity::degraded,
                            .title = "The nodes have different versions of PyTorch",
                            .causes = kCauses,
                            .page = kDiffersPage},
                           {.id = "software-torch-build-differs",
                            .fault_class = FaultClass::nccl_cuda_mismatch,
                            .worst = Severity::notice,
                            .title = "The nodes' PyTorch is built for different CUDA versions",
                            .causes = kCauses,
                            .page = kBuildPage}};

}  // namespace

extern const Check software_torch_versions{
    .title = "All nodes have one PyTorch", .codes = kCodes, .run = run, .needs = Needs::pairs};

}  // namespace distdoctor::checks
