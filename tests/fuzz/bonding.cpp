// /proc/net/bonding/NAME: any bytes are a bond or none, and never trouble.
#include "collect/bonding.h"

#include <distdoctor/bonds.h>

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
  const auto bond = collect::parse_bond(text);
  if (!bond) return 0;
  must(!bond->mode.empty() && bond->members.size() <= 256);
  for (const auto& member : bond->members) must(!member.speed_mbps || *member.speed_mbps > 0);
  must(members_carrying(*bond).size() <= members_up(*bond).size());
  const auto mbps = one_stream_mbps({.name = "bond0", .bond = bond});
  must(!mbps || *mbps > 0);
  return 0;
}
