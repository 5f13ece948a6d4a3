// Bytes of a shared library: any of them tell something or nothing, within bounds.
#include "collect/elf.h"

#include "target.h"

#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const ReadPart part = [bytes](std::uint64_t offset, std::size_t limit) {
    if (limit > (std::size_t{8} << 20)) std::abort();
    return offset < bytes.size() ? std::string(bytes.substr(offset, limit)) : "";
  };
  const auto elf = read_elf(part);
  if (elf && !elf->kind.wide) std::abort();
  for (const auto& name : exported_symbols(part, "nccl")) {
    if (!name.starts_with("nccl")) std::abort();
  }
  static_cast<void>(find_section(part, ".rodata"));
  return 0;
}
