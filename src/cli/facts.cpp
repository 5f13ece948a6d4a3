#include <distdoctor/exit_code.h>
#include <distdoctor/views.h>

#include "base/text.h"
#include "capture/anonymous.h"
#include "capture/capture.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/session.h"
#include "exam/recording.h"
#include "fleet/record.h"
#include "render/render.h"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

namespace distdoctor::cli {

namespace {

constexpr std::size_t kLongestWord = 4096;

// "@FILE" holds the word: of a command line everybody on the machine can read it.
Result<std::string> secret_word(const std::string& said, const Options& options) {
  if (said.empty()) return capture::random_word();
  if (!said.starts_with('@')) return said;
  DD_TRY(auto text, read_file(said.substr(1), kLongestWord, options.by));
  const auto word = trim(text);
  if (word.empty()) return failure("read the word of --anonymous", "it is empty", said.substr(1));
  return std::string(word);
}

Result<std::string> recorded(const Options& options) {
  DD_TRY(auto text, fleet::record_here(options.by));
  if (!options.anonymous) return text;
  DD_TRY(auto captured, capture::read(text, "this machine"));
  DD_TRY(const auto word, secret_word(*options.anonymous, options));
  return capture::write(capture::anonymous(std::move(captured), word));
}

int capture_here(const Options& options) {
  const auto text = recorded(options);
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

  const auto& nodes = outcome->cluster.nodes;
  std::ostringstream text;
  if (nodes.size() == 1) {
    render::facts(nodes.front(), find_prediction(outcome->cluster, nodes.front().host), text);
  } else {
    text << exam::write_recording(outcome->cluster);  // one JSON text, as of check --save
  }
  const bool complete = std::ranges::all_of(nodes, &NodeFacts::reached);
  const int exit_code = complete ? kExitHealthy : kExitInconclusive;
  if (options.output.empty()) return print(text.str(), exit_code);
  const auto written = write_file(options.output, text.str(), write_by(options));
  return written ? exit_code : complain(written.error());
}

}  // namespace distdoctor::cli
