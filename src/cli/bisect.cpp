#include <distdoctor/exit_code.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/report.h"
#include "cli/session.h"
#include "render/runs.h"

#include <unistd.h>

#include <iostream>
#include <string>

namespace distdoctor::cli {
namespace {

// A TTY sees each run as it ends; what is printed at the end has them all.
void watch(Options& options) {
  if (::isatty(STDERR_FILENO) == 0) return;
  options.exam.bisection->watch = [](const Experiment& run, bool ended) {
    std::cerr << "\r\x1b[K";
    if (ended) {
      std::cerr << printable(render::run_line(run)) << '\n';
    } else {
      std::cerr << "run " << run.number << ": " << printable(run.what) << std::flush;
    }
  };
}

void tell_refusal(const std::vector<std::string>& busy) {
  std::cerr << "distdoctor: no collective was run, since others work there (--force runs it all "
               "the same):\n";
  for (const std::string& line : busy) std::cerr << "  " << line << '\n';
}

int show_tree(const exam::Outcome& outcome) {
  std::string text = "Runs that would be made, until one answers:\n";
  for (const std::string& line : outcome.tree) text += "  " + line + "\n";
  return print(text, kExitHealthy);
}

}  // namespace

int bisect(const Options& asked) {
  Options options = asked;
  watch(options);
  const auto outcome = examine(options);
  if (!outcome) return complain(outcome.error());
  if (options.dry_run) return show_tree(*outcome);
  if (!outcome->busy.empty()) tell_refusal(outcome->busy);
  return report("bisect", options, *outcome);
}

}  // namespace distdoctor::cli
