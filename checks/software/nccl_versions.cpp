// All ranks of a job load one version of NCCL.
#include <distdoctor/check.h>

#include "found.h"

namespace distdoctor::checks {
namespace {

using namespace software;  // NOLINT(google-build-using-namespace): the look-ups of this folder

struct Copy {
  const NodeFacts* node;
  const NcclLibrary* library;

  [[nodiscard]] std::string version() const { return library->version; }
  [[nodiscard]] std::string meeting() const { return meeting_of(*node, *library); }
  // By a rank that runs: what a program would load is a guess beside it.
  [[nodiscard]] bool mapped() const { return library->origin.starts_with(kMapped); }
};

// Only copies that were found in one way can be compared: a wheel's against the system's says
// nothing about the job.
std::vector<Copy> comparable(const Case& c, Judge& judge) {
  std::vector<Copy> mapped;
  std::vector<Copy> all;
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* library = judge.see(node, "nccl_library", node.nccl_library);
    if (library == nullptr || library->version.empty()) continue;
    all.push_back({&node, library});
    if (all.back().mapped()) mapped.push_back(all.back());
  }
  return mapped.size() > 1 ? mapped : all;
}

Finding differing(const Case& c, const std::vector<Copy>& copies, const std::string& usual) {
  const bool live = std::ranges::all_of(copies, &Copy::mapped) &&
                    odd_ones_out(copies, copies.front().meeting(), &Copy::meeting).empty();
  Finding finding{
      .code = "software-nccl-version-differs",
      .severity = live && c.cluster.job.nccl == Use::yes ? Severity::blocker : Severity::notice,
      .certainty = live ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::crash,
      .summary = ""};
  std::vector<std::string> others;
  for (const Copy& copy : copies) {
    const bool odd = copy.version() != usual;
    if (odd) {
      finding.subjects.nodes.push_back(copy.node->host);
      others.push_back(copy.node->host + " has " + copy.version());
    }
    finding.evidence.push_back(
        {.node = copy.node->host,
         .fact = "NCCL (" + copy.library->origin + ")",
         .observed = copy.version(),
         .expected = "the same on all nodes",
         .context = std::string(slug(copy.node->context)),
         .command = fmt::format("strings -n 12 {} | grep -m 1 'NCCL version'",
                                shell_quote(copy.library->path))});
  }
  finding.summary = fmt::format(
      "{}, while {} is usual: NCCL refuses to join different versions{}", fmt::join(others, ", "),
      usual, live ? "" : "; but these need not be the copies that one job loads");
  finding.fix = {{.node = "*",
                  .kind = Fix::Kind::manual,
                  .text = fmt::format("use one environment (virtual environment, container image, "
                                      "module) on all nodes, so that each loads NCCL {}",
                                      usual)}};
  return finding;
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  const auto copies = comparable(c, judge);
  const auto usual = usual_value(copies, &Copy::version);
  if (!usual || odd_ones_out(copies, usual->value, &Copy::version).empty()) return;
  judge.report(differing(c, copies, usual->value));
}

constexpr Page kPage{
    .meaning =
        "The ranks would load different versions of NCCL. From major to patch they must be equal: "
        "else communicators do not come up (`Mismatched NCCL version detected`), or hang in "
        "versions that do not compare.",
    .confirm =
        "`NCCL_DEBUG=VERSION` in the job prints the version; `python3 -c 'import torch; "
        "print(torch.cuda.nccl.version())'` on each node.",
    .fix =
        "Start the job from one environment on all nodes: the same container image, or a "
        "virtual environment on a shared file system.",
    .verify = "The same command prints one version everywhere."};
constexpr Code kCodes[] = {{.id = "software-nccl-version-differs",
                            .fault_class = FaultClass::nccl_version_mismatch,
                            .worst = Severity::blocker,
                            .title = "The nodes have different versions of NCCL",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check software_nccl_versions{.title = "All nodes load one version of NCCL",
                                          .codes = kCodes,
                                          .run = run,
                                          .needs = Needs::pairs};

}  // namespace distdoctor::checks
