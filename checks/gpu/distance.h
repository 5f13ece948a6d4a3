// How far two PCI devices are apart, in the words of `nvidia-smi topo -m` and of NCCL's levels.
#pragma once

#include <distdoctor/enum_names.h>
#include <distdoctor/facts/pci.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace distdoctor::checks::gpu {

// pix: one switch; pxb: several bridges below one root port; phb: by way of the CPU; sys: by way of
// the link between CPUs.
enum class Distance : std::uint8_t { pix, pxb, phb, sys };

constexpr std::string_view name_of(Distance distance) {
  constexpr std::string_view kNames[] = {"PIX", "PXB", "PHB", "SYS"};
  return kNames[static_cast<std::size_t>(distance)];
}

// How many bridges two devices have in common, from the root port down.
inline std::size_t common_bridges(const PciDevice& a, const PciDevice& b) {
  const auto parted = std::ranges::mismatch(a.above, b.above);
  return static_cast<std::size_t>(parted.in1 - a.above.begin());
}

inline Distance distance_between(const PciDevice& a, const PciDevice& b) {
  const std::size_t common = common_bridges(a, b);
  if (common > 0) {
    const bool one_switch = a.above.size() <= common + 1 && b.above.size() <= common + 1;
    return one_switch ? Distance::pix : Distance::pxb;
  }
  return a.numa >= 0 && b.numa >= 0 && a.numa != b.numa ? Distance::sys : Distance::phb;
}

}  // namespace distdoctor::checks::gpu
