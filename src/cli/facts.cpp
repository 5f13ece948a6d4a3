#include <distdoctor/exit_code.h>
#include <distdoctor/views.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/session.h"
#include "render/render.h"

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
  const int exit_code = complete ? kExitHealthy : kExitInconclusive;
  if (options.output.empty()) return print(text.str(), exit_code);
  const auto written = write_file(options.output, text.str(), write_by(options));
  return written ? exit_code : complain(written.error());
}

}  // namespace distdoctor::cli
