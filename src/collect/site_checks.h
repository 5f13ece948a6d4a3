// The site's own check programs: which of a folder may be run, and what each one said.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "machine/machine.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace distdoctor::collect {

inline constexpr std::string_view kChecksDir = "/etc/distdoctor/checks.d";
inline constexpr std::size_t kMostSiteChecks = 64;  // of one folder; names in order

// request.checks_dir: a folder; empty: kChecksDir, which may be absent; "none": none is run.
void collect_site_checks(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);

// Why nothing of a folder, or this file, may be run: "" where it may. Nobody but root and we may be
// able to change it: not the file, and no folder that its path leads through. Links are followed.
std::string distrusted_folder(const machine::Machine& machine, std::string_view path, Deadline by);
std::string distrusted_file(const machine::Machine& machine, std::string_view path, Deadline by);

// Result, words, fix and error, by the exit codes of the Monitoring Plugins guidelines (0 ok, 1
// warning, 2 critical, 3 unknown; what it prints behind a '|' is performance data), or by
// {"severity": "ok|degraded|blocker|unknown", "text": "...", "fix": "..."} and an exit status that
// is 0 or says the same.
SiteCheck read_site_check(const machine::ChildOutput& output);

}  // namespace distdoctor::collect
