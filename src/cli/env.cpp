#include <distdoctor/exit_code.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/session.h"
#include "render/environment.h"

#include <algorithm>
#include <sstream>

namespace distdoctor::cli {

int env(const Options& options) {
  const auto outcome = examine(options);
  if (!outcome) return complain(outcome.error());
  std::ostringstream text;
  render::environment(outcome->cluster.predicted.recommended, options.node, text);
  const bool complete = std::ranges::all_of(outcome->cluster.nodes, &NodeFacts::reached);
  return print(text.str(), complete ? kExitHealthy : kExitInconclusive);
}

}  // namespace distdoctor::cli
