// How far two PCI devices are apart, in the words of `nvidia-smi topo -m` and of NCCL's levels.
#pragma once

#include <distdoctor/enum_names.h>
#include <distdoctor/facts/pci.h>

#include "devices.h"

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

// Where the ways of two devices part, each one's port of the switch decides whether traffic between
// them goes up to the CPU (ACS). Null: no port does that, or it goes by way of the CPU anyhow.
inline const PciDevice* redirecting_port(const Pci& pci, const PciDevice& a, const PciDevice& b) {
  const std::size_t common = common_bridges(a, b);
  if (common == 0) return nullptr;
  for (const PciDevice* device : {&a, &b}) {
    if (device->above.size() <= common) continue;
    const PciDevice* port = find_device(pci, device->above[common]);
    if (port != nullptr && port->acs_redirects == true) return port;
  }
  return nullptr;
}

}  // namespace distdoctor::checks::gpu
