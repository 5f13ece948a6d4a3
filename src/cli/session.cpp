#include "cli/session.h"

#include <distdoctor/exit_code.h>

#include "base/text.h"
#include "cli/input.h"
#include "fleet/on_paper.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

namespace distdoctor::cli {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler writes it

void note_interrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);  // the second one ends us the usual way
}

exam::Progress progress_line() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody writes our environment
  const char* const terminal = std::getenv("TERM");
  const bool knows_codes = terminal != nullptr && std::string_view(terminal) != "dumb";
  if (::isatty(STDERR_FILENO) == 0 || !knows_codes) return {};
  return [](std::string_view stage, std::string_view detail) {
    std::cerr << "\r\x1b[K";
    if (stage != "close") std::cerr << stage << ": " << printable(detail) << std::flush;
  };
}

}  // namespace

Result<exam::Outcome> examine(const Options& options) {
  exam::Options exam_options = options.exam;
  if (!options.since.empty()) {
    DD_TRY(exam_options.since, read_facts({options.since}, options.by));
  }
  if (!options.facts_files.empty()) {
    DD_TRY(auto cluster, read_facts(options.facts_files, options.by));
    return exam::run_recorded(std::move(cluster), exam_options);
  }
  if (!options.root.empty()) {
    DD_TRY(auto node, fleet::read_on_paper(options.root));
    return exam::run_recorded({.nodes = {std::move(node)}}, exam_options);
  }
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
  exam_options.interrupted = &interrupted;
  return exam::run(exam_options, progress_line());
}

Deadline write_by(const Options& options) {
  return std::max(options.by, Deadline::after(std::chrono::seconds(1)));
}

int complain(const Error& error) {
  std::cerr << "distdoctor: " << error.render() << '\n';
  return kExitUsage;
}

}  // namespace distdoctor::cli
