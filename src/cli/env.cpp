#include <distdoctor/exit_code.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "render/environment.h"

#include <algorithm>
#include <iostream>

namespace distdoctor::cli {

int env(const Options& options) {
  const auto outcome = examine(options);
  if (!outcome) return complain(outcome.error());
  render::environment(outcome->cluster.predicted.recommended, options.node, std::cout);
  std::cout.flush();
  const bool complete = std::ranges::all_of(outcome->cluster.nodes, &NodeFacts::reached);
  return complete ? kExitHealthy : kExitInconclusive;
}

}  // namespace distdoctor::cli
