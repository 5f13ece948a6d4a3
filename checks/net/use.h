// What it means for a finding that a job may do without the library that it is about.
#pragma once

#include <distdoctor/finding.h>
#include <distdoctor/job.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace distdoctor::checks {

// A finding about one library only is a notice where the job may do without it.
inline Severity capped_by_use(Severity severity, Use use) {
  return use == Use::yes ? severity : std::min(severity, Severity::notice);
}

// Why it is no more than a notice, and what makes it certain; empty where it is certain.
inline std::string hangs_on_use(Use use, std::string_view library, std::string_view backend) {
  if (use != Use::maybe) return "";
  return fmt::format("; a blocker if the job uses {} (say --backend {})", library, backend);
}

}  // namespace distdoctor::checks
