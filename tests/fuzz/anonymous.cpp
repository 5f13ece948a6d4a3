// Any text, wherever a captured machine may hold one: names and numbers go, and what is done twice
// is done alike.
#include "capture/anonymous.h"

#include "capture/capture.h"
#include "capture/numbers.h"
#include "capture/scramble.h"
#include "target.h"

#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace distdoctor;  // NOLINT(google-build-using-namespace): under test
  const std::string text(reinterpret_cast<const char*>(data), size);
  const capture::Scrambler scrambler("river");
  if (capture::hide_ids(text, scrambler).size() != text.size()) std::abort();
  static_cast<void>(capture::hide_addresses(text, scrambler));
  machine::CapturedMachine captured{.hostname = text.substr(0, 64), .release = "6.1.0"};
  for (const char* path : {"/etc/hosts", "/etc/passwd", "/etc/resolv.conf", "/proc/7/cmdline",
                           "/proc/7/environ", "/proc/7/maps", "/proc/self/mountinfo"}) {
    captured.files[path].text = text;
  }
  captured.files[std::string("/home/") + "x/" + text].link = text;
  captured.kernel_log = text;
  captured.children["nft -a list ruleset"].out = text;
  captured.children["/etc/distdoctor/checks.d/one"].out = text;
  if (capture::anonymous(captured, "river") != capture::anonymous(captured, "river")) std::abort();
  return 0;
}
