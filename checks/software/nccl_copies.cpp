// The NCCL that is loaded is the one that came with PyTorch.
#include <distdoctor/check.h>

#include "found.h"

namespace distdoctor::checks {
namespace {

using namespace software;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// The copy that pip installed for this PyTorch.
const NcclLibrary* own_copy(const Software& all) {
  const auto packages = all.torch_path.substr(0, all.torch_path.rfind('/'));
  if (packages.empty()) return nullptr;
  const auto found = std::ranges::find_if(all.nccl, [&](const NcclLibrary& library) {
    return library.path.starts_with(packages + "/nvidia/nccl/");
  });
  return found == all.nccl.end() ? nullptr : &*found;
}

std::string copy_text(const NcclLibrary& library) {
  return fmt::format("{} {} ({})", library.version, library.path, library.origin);
}

void judge_node(const Case& c, const Found& one, Judge& judge) {
  const NcclLibrary& first = one.software->nccl.front();
  const NcclLibrary* own = own_copy(*one.software);
  if (own == nullptr || first.path == own->path || first.version.empty() || own->version.empty() ||
      minor_version(first.version) == minor_version(own->version)) {
    return;
  }
  Finding finding{
      .code = "software-nccl-replaced",
      .severity = capped(c, {one}, Severity::notice),
      .certainty = live(one) ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {one.host()}},
      .summary = fmt::format("on {} NCCL {} goes before the {} that came with PyTorch {}",
                             one.host(), first.version, own->version, one.software->torch)};
  finding.evidence.push_back(
      row_of(one, "NCCL", copy_text(first), copy_text(*own),
             "ldconfig -p | grep libnccl.so.2; echo \"$LD_PRELOAD $LD_LIBRARY_PATH\""));
  finding.fix = {by_hand(one.host(), fmt::format("unless it is meant: take the folder of {} from "
                                                 "LD_LIBRARY_PATH, or it from LD_PRELOAD",
                                                 first.path))};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return judge.skip("the job does without NCCL");
  const auto all = with_nccl(found_on(c, judge));
  for (const Found& one : all) judge_node(c, one, judge);
  const bool any =
      std::ranges::any_of(all, [](const Found& one) { return own_copy(*one.software) != nullptr; });
  if (!any) judge.skip("no PyTorch was found that brings its own NCCL");
}

constexpr Page kPage{
    .meaning =
        "There are several copies of NCCL, and LD_PRELOAD, LD_LIBRARY_PATH or the way in which "
        "this PyTorch was linked lets another one go first than the one that was installed with "
        "it. People do that to try a newer NCCL; a module or an image that does it by accident "
        "brings one that is too old for PyTorch, or another one on each node.",
    .confirm = "`grep libnccl /proc/PID/maps` of a rank that runs; NCCL_DEBUG=VERSION.",
    .fix = "Take the other folder from LD_LIBRARY_PATH, or the library from LD_PRELOAD.",
    .verify = "NCCL_DEBUG=VERSION prints what `pip show nvidia-nccl-cu12` says."};
constexpr std::string_view kCauses[] = {"software-nccl-version-differs"};
constexpr Code kCodes[] = {{.id = "software-nccl-replaced",
                            .fault_class = FaultClass::nccl_version_mismatch,
                            .worst = Severity::notice,
                            .title = "Another NCCL goes before the one of PyTorch",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check software_nccl_copies{
    .title = "PyTorch loads its own NCCL", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
