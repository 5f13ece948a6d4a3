// What the commands that examine machines share: Ctrl-C, the progress line, running the exam.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "exam/exam.h"

namespace distdoctor::cli {

// Runs the exam over the machines or over --facts; Ctrl-C ends it early.
Result<exam::Outcome> examine(const Options& options);

// Until when an answer may be written: a run that used its budget up has a second left for it.
Deadline write_by(const Options& options);

// One line on stderr: "distdoctor: open x: No such file or directory". Returns kExitUsage.
int complain(const Error& error);

}  // namespace distdoctor::cli
