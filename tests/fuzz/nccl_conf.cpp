// NCCL reads any bytes as its configuration; each name counts once, and fits NCCL's buffers.
#include "base/nccl_config.h"
#include "target.h"

#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kBuffer = 1023;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::set<std::string> names;
  int last = 0;
  for (const auto& line : distdoctor::parse_nccl_config(text)) {
    if (!names.insert(line.name).second || line.line <= last) std::abort();
    if (line.name.size() > kBuffer || line.value.size() > kBuffer) std::abort();
    last = line.line;
  }
  return 0;
}
