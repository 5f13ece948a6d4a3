#include <distdoctor/exit_code.h>
#include <distdoctor/views.h>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/session.h"
#include "render/render.h"

#include <iostream>
#include <sstream>

namespace distdoctor::cli {

int facts(const Options& options) {
  Options reading = options;
  reading.exam.probe = false;
  const auto outcome = examine(reading);
  if (!outcome) return complain(outcome.error());

  std::ostringstream text;
  bool complete = true;
  for (const NodeFacts& node : outcome->cluster.nodes) {
    complete = complete && node.reached;
    render::facts(node, find_prediction(outcome->cluster, node.host), text);
  }
  if (options.output.empty()) {
    std::cout << text.str() << std::flush;
  } else if (const auto written = write_file(options.output, text.str()); !written) {
    return complain(written.error());
  }
  return complete ? kExitHealthy : kExitInconclusive;
}

}  // namespace distdoctor::cli
