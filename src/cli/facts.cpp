#include <distdoctor/exit_code.h>
#include <distdoctor/views.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/session.h"
#include "fleet/record.h"
#include "render/render.h"

#include <sstream>

namespace distdoctor::cli {

namespace {

int capture_here(const Options& options) {
  const auto text = fleet::record_here(options.by);
  if (!text) return complain(text.error());
  const auto written = write_file(options.capture, *text, write_by(options));
  return written ? kExitHealthy : complain(written.error());
}

}  // namespace

int facts(const Options& options) {
  if (!options.capture.empty()) return capture_here(options);
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
