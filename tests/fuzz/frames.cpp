// Whatever an agent says, cut into pieces in any way, is frames or one line that says why not; and
// what reads the frames' bodies takes them or refuses them, as the coordinator would.
#include "codec/codec.h"
#include "codec/read.h"
#include "fleet/frame.h"
#include "fleet/greeting.h"
#include "fleet/messages.h"
#include "target.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a fuzz target of this

void check_line(const Error& error) {
  if (error.render().find('\n') != std::string::npos) std::abort();
}

void read_bodies(const fleet::Incoming& frame) {
  fleet::AgentHello hello;
  fleet::Beat beat;
  NodeFacts facts;
  static_cast<void>(codec::read_value(frame.body, hello, "read"));
  static_cast<void>(codec::read_value(frame.body, beat, "read"));
  static_cast<void>(codec::read_into(frame.body, facts));
  const auto answer = codec::read_answer(frame.document.root());
  if (!answer) check_line(answer.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto greeting = fleet::find_greeting(text); greeting && *greeting) {
    if ((*greeting)->end > text.size()) std::abort();
    text.remove_prefix((*greeting)->end);
  }
  fleet::FrameReader reader;
  const std::size_t step = text.empty() ? 1 : 1 + static_cast<unsigned char>(text.front());
  while (!text.empty()) {
    reader.feed(text.substr(0, step));
    text.remove_prefix(std::min(step, text.size()));
    while (true) {
      const auto frame = reader.next();
      if (!frame) {
        check_line(frame.error());
        return 0;
      }
      if (!*frame) break;
      read_bodies(**frame);
    }
  }
  return 0;
}
