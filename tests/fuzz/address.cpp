// An address that is understood is written in one way, and reads back as itself.
#include <distdoctor/address.h>

#include "target.h"

#include <cstdlib>
#include <string_view>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using distdoctor::Address;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto address = Address::parse(text);
  if (!address) return 0;
  if (Address::parse(address->text()) != address) std::abort();
  for (int length = 0; length <= address->bits(); ++length) {
    if (!address->shares_prefix(*address, length)) std::abort();
  }
  return 0;
}
