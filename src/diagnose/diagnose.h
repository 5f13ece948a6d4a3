// Runs the checks over the facts and ranks what they find. Pure; shuffling changes nothing.
#pragma once

#include <distdoctor/check.h>
#include <distdoctor/diagnosis.h>
#include <distdoctor/facts.h>
#include <distdoctor/policy.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace distdoctor::diagnose {

enum class FailOn : std::uint8_t { blocker, degraded, unknown };

struct Selection {
  std::vector<std::string> only = {};  // areas, checks or codes; empty: all
  std::vector<std::string> skip = {};
  FailOn fail_on = FailOn::blocker;
};

// Whether any code of any check is left.
bool leaves_any(const Selection& selection, std::span<const NamedCheck> checks);

struct Judged {
  std::vector<Finding> findings = {};
  std::vector<Gap> gaps = {};
  std::vector<CheckLine> checks = {};  // in module order (area_order), then by name
  bool our_bug = false;                // a check threw
};

// A check that throws is our bug: its line is `unknown` with the text, the others go on.
Judged judge(const ClusterFacts& cluster,
             const Expectations& expect,
             std::span<const NamedCheck> checks,
             const Selection& selection);
// Roots in rank order, consequences nested.
std::vector<Cause> rank(std::vector<Finding> findings,
                        std::span<const NamedCheck> checks,
                        const std::vector<std::string>& peers);
std::vector<MergedGap> merge_gaps(const std::vector<Gap>& gaps);
// All of it, with verdict and exit code. Findings win over all else; then our own bug, then
// blindness. `cut_short`: not all was done, so that what is missing may be anything.
Diagnosis diagnose(const ClusterFacts& cluster,
                   const Expectations& expect,
                   const Selection& selection,
                   bool cut_short = false);
Diagnosis conclude(Judged judged,
                   const ClusterFacts& cluster,
                   const Selection& selection,
                   bool cut_short);

}  // namespace distdoctor::diagnose
