#include "cli/report.h"

#include <distdoctor/exit_code.h>

#include "cli/files.h"
#include "cli/session.h"
#include "exam/recording.h"
#include "render/render.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

namespace distdoctor::cli {
namespace {

std::string_view variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody writes our environment
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The first of these that is set decides (man 7 locale).
bool utf8_terminal() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = variable(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos ||
           value.find("utf8") != std::string_view::npos;
  }
  return false;
}

int terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<int>(size.ws_col, 60, 140);
}

render::TextOptions text_options(const Options& options) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  return {.utf8 = utf8_terminal(),
          .colour = terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb",
          .verbose = options.verbose,
          .width = terminal_width()};
}

// Findings win over a file that could not be written, but silence never does.
int save(const Options& options, const exam::Outcome& outcome) {
  if (options.save.empty()) return outcome.diagnosis.exit_code;
  const auto saved =
      write_file(options.save, exam::write_recording(outcome.cluster), write_by(options));
  if (saved) return outcome.diagnosis.exit_code;
  const int usage = complain(saved.error());
  return outcome.diagnosis.exit_code == kExitFindings ? kExitFindings : usage;
}

void ask_for_a_report() {
  std::cerr << "distdoctor: a check failed, which is our own bug; please report it with the output "
               "above and `distdoctor --version`\n";
}

}  // namespace

int report(std::string_view command, const Options& options, const exam::Outcome& outcome) {
  const diagnose::Selection& selection = options.exam.selection;
  const render::Report report{.command = command,
                              .diagnosis = outcome.diagnosis,
                              .cluster = outcome.cluster,
                              .elapsed_s = outcome.elapsed_s,
                              .selected = !selection.only.empty() || !selection.skip.empty()};
  std::ostringstream text;
  if (options.format == Format::json) {
    render::json(report, text);
  } else {
    render::text(report, text_options(options), text);
  }
  const int printed = print(text.str(), kExitHealthy);
  if (outcome.diagnosis.exit_code == kExitOurBug) ask_for_a_report();
  const int saved = save(options, outcome);
  return printed == kExitHealthy ? saved : printed;
}

}  // namespace distdoctor::cli
