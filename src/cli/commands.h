// One function a subcommand: options -> exam -> render -> exit code.
#pragma once

#include "cli/options.h"

namespace distdoctor::cli {

int check(const Options& options);
int bisect(const Options& options);
int facts(const Options& options);
int env(const Options& options);
int explain(const Options& options);
int list(const Options& options);

}  // namespace distdoctor::cli
