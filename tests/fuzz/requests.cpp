// What an agent is asked and what it answers: refused, or the same after writing and reading.
#include "codec/codec.h"
#include "target.h"

#include <cstdlib>
#include <string>
#include <string_view>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace distdoctor::codec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto request = read_request(text)) {
    const std::string written = write_request(*request);
    const auto again = read_request(written);
    if (!again || write_request(*again) != written) std::abort();
  }
  if (const auto answer = read_answer(text)) {
    const std::string written = write_answer(*answer);
    const auto again = read_answer(written);
    if (!again || write_answer(*again) != written) std::abort();
  }
  return 0;
}
