#include <distdoctor/exit_code.h>
#include <distdoctor/views.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/session.h"
#include "render/environment.h"

#include <algorithm>
#include <iostream>
#include <sstream>

namespace distdoctor::cli {

int env(const Options& options) {
  const auto outcome = examine(options);
  if (!outcome) return complain(outcome.error());
  if (!options.node.empty() && find_node(outcome->cluster, options.node) == nullptr) {
    return complain({.attempt = "print the exports of " + options.node, .reason = "no such peer"});
  }
  for (const NodeFacts& node : outcome->cluster.nodes) {
    if (node.reached) continue;
    std::cerr << "distdoctor: " << printable(node.host)
              << " was not reached, so nothing is known of it: " << printable(node.not_reached)
              << '\n';
  }
  std::ostringstream text;
  render::environment(outcome->cluster.predicted.recommended, options.node, text);
  const bool complete = std::ranges::all_of(outcome->cluster.nodes, &NodeFacts::reached);
  return print(text.str(), complete ? kExitHealthy : kExitInconclusive);
}

}  // namespace distdoctor::cli
