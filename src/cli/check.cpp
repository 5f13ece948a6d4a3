#include <distdoctor/exit_code.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/report.h"
#include "cli/session.h"
#include "exam/plan_text.h"

#include <sstream>

namespace distdoctor::cli {

int check(const Options& options) {
  const auto outcome = examine(options);
  if (!outcome) return complain(outcome.error());
  if (!options.dry_run) return report("check", options, *outcome);
  std::ostringstream text;
  exam::show_plan(outcome->plan, text);
  return print(text.str(), kExitHealthy);
}

}  // namespace distdoctor::cli
