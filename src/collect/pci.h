// PCI devices of sysfs (Documentation/ABI/testing/sysfs-bus-pci) and their config space.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// "0000:18:00.0", which is how sysfs names a device.
bool is_pci_address(std::string_view text);
// The bridges of "../../../devices/pci0000:00/0000:00:01.0/0000:18:00.0", root port first, without
// the device itself.
std::vector<std::string> parse_bridges_above(std::string_view link);
// "16"; 0, 255 and "Unknown" say nothing.
std::optional<int> parse_lanes(std::string_view text);
// 16 of "16.0 GT/s PCIe"; "Unknown" says nothing.
std::optional<double> parse_transfer_rate(std::string_view text);

struct AcsReading {
  std::optional<bool> redirects = {};  // none: no such capability was found
  bool cut = false;                    // the list goes on behind the end of these bytes
};
// Of the first bytes of a config space: walks the extended capabilities (PCI Express base
// specification 5.0, 7.6.3 and 7.7.8: Access Control Services).
AcsReading acs_of_config(std::string_view config);

struct AtsReading {
  std::optional<bool> on = {};  // none: no such capability was found
  bool cut = false;             // as above
};
// Likewise the enable bit of Address Translation Services (PCI Express base specification 5.0,
// 10.5.1: ATS Control, bit 15).
AtsReading ats_of_config(std::string_view config);

// Device Control, bit 4 (PCI Express base specification 5.0, 7.5.3.4), of the first bytes of a
// config space; none: they hold no PCI Express capability.
std::optional<bool> relaxed_ordering_of_config(std::string_view config);

// Of /proc/cpuinfo: x86 CPUs tell a guest so by a flag.
bool says_hypervisor(std::string_view cpuinfo);

}  // namespace distdoctor::collect
