// The nodes have the same driver packages for their fabric: OFED, or AWS's EFA.
#include <distdoctor/check.h>

#include "found.h"

namespace distdoctor::checks {
namespace {

using namespace software;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// A container shows only the driver's version, which cannot be compared with that of a package.
std::string ofed_of(const Found& one) {
  const std::string& text = one.software->ofed;
  return text.starts_with("mlx5_core ") ? "" : text;
}
std::string driver_of(const Found& one) {
  const std::string& text = one.software->ofed;
  return text.starts_with("mlx5_core ") ? text : "";
}
std::string efa_of(const Found& one) {
  return one.software->efa.empty() ? "" : "EFA installer " + one.software->efa;
}

void judge_package(const Case& c,
                   const std::vector<Found>& all,
                   std::string (*field)(const Found&),
                   const char* command,
                   Judge& judge) {
  std::string usual;
  const auto odd = differing(all, field, usual);
  if (odd.empty()) return;
  Finding finding{
      .code = "software-fabric-differs",
      .severity = capped(c, all, Severity::notice),
      .certainty = Certainty::possible,
      .symptom = Symptom::crash,
      .summary = fmt::format("{} of {} nodes do not have {}", odd.size(), all.size(), usual)};
  for (const Found& one : odd) {
    finding.subjects.nodes.push_back(one.host());
    finding.evidence.push_back(row_of(one, "fabric drivers", field(one), usual, command));
    finding.fix.push_back(by_hand(
        one.host(), fmt::format("when {} is next maintained, give it {}; until then look here "
                                "first if only this node fails",
                                one.host(), usual)));
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const auto all = found_on(c, judge);
  const bool any = std::ranges::any_of(all, [](const Found& one) {
    return !ofed_of(one).empty() || !driver_of(one).empty() || !efa_of(one).empty();
  });
  if (!any) judge.skip("no package of a fabric was found");
  judge_package(c, all, ofed_of, "ofed_info -s", judge);
  judge_package(c, all, driver_of, "cat /sys/module/mlx5_core/version", judge);
  judge_package(c, all, efa_of, "head -1 /opt/amazon/efa_installed_packages", judge);
}

constexpr Page kPage{
    .meaning =
        "Nodes of one job have different driver packages for their fabric (NVIDIA's OFED, AWS's "
        "EFA). They talk to each other; when a single node fails or is slow, it is the first "
        "difference to look at.",
    .confirm = "`ofed_info -s`, or `head -1 /opt/amazon/efa_installed_packages`, on each node.",
    .fix = "Bring all nodes to one version when they are next maintained.",
    .verify = "The command prints one version everywhere."};
constexpr Code kCodes[] = {{.id = "software-fabric-differs",
                            .fault_class = FaultClass::driver_mismatch,
                            .worst = Severity::notice,
                            .title = "Nodes have different drivers for their fabric",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check software_fabric_packages{
    .title = "Drivers of the fabric agree", .codes = kCodes, .run = run, .needs = Needs::pairs};

}  // namespace distdoctor::checks
