// A facts file is refused in one line, or it is facts: then writing and reading them changes
// nothing.
#include "codec/codec.h"
#include "target.h"

#include <cstdlib>
#include <string>
#include <string_view>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace distdoctor::codec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto facts = read_facts_file(text, "facts.json");
  if (!facts) {
    if (facts.error().render().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const std::string written = write_cluster(*facts);
  const auto again = read_facts_file(written, "again.json");
  if (!again || write_cluster(*again) != written) std::abort();
  return 0;
}
