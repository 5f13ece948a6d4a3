// What a site's own check program printed, behind its exit status in the first byte: a verdict, or
// "could not tell" with a reason; never more words than are kept, and none that a terminal obeys.
#include "base/text.h"
#include "collect/site_checks.h"
#include "target.h"

#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace distdoctor;  // NOLINT(google-build-using-namespace): under test
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const int status = bytes.empty() ? 0 : static_cast<unsigned char>(bytes.front());
  const std::string out(bytes.substr(bytes.empty() ? 0 : 1));
  for (const auto& check : {collect::read_site_check({.exit_code = status, .out = out}),
                            collect::read_site_check({.exit_code = status, .err = out})}) {
    if ((check.result == SiteResult::unknown) == check.error.empty()) std::abort();
    for (const std::string& text : {check.says, check.fix, check.error}) {
      if (text.size() > 1000 || printable(text) != text) std::abort();
    }
  }
  return 0;
}
