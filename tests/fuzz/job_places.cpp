// What a script sets a path to: filled in from an environment, any bytes end, and in bounds.
#include "base/job_places.h"

#include "target.h"

#include <cstdlib>
#include <string_view>

namespace {

using namespace distdoctor;  // NOLINT(google-build-using-namespace): all of them are under test

void must(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::map<std::string, std::string> environment = {{"A", "/a:/b"}, {"B", ""}};
  const auto list = fill_in("LD_LIBRARY_PATH", text, environment);
  must(list.text.size() <= (size + 1) * 8);
  const auto word = fill_in("NCCL_NET_PLUGIN", text, environment);
  must(word.whole || word.text.empty());
  if (!text.contains('$') && !text.contains('`') && size < 60'000) must(word.text == text);
  return 0;
}
