// What a command that judges prints and saves, in the format that was asked for.
#pragma once

#include "cli/options.h"
#include "exam/exam.h"

#include <string_view>

namespace distdoctor::cli {

// Returns the exit code.
int report(std::string_view command, const Options& options, const exam::Outcome& outcome);

}  // namespace distdoctor::cli
