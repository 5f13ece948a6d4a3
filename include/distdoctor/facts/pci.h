// GPUs, RDMA and network cards, NVSwitches, and the bridges above them, as sysfs shows them:
// Documentation/ABI/testing/sysfs-bus-pci.
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor {

struct PciDevice {
  std::string address = {};  // "0000:18:00.0"
  std::uint16_t vendor = 0;  // 0x10de NVIDIA, 0x1002 AMD, 0x15b3 Mellanox, 0x1d0f Amazon
  std::uint16_t device = 0;
  std::uint32_t device_class = 0;  // 0x030200 3D controller, 0x060400 bridge, 0x068000 NVSwitch
  std::string driver = {};         // bound kernel driver; empty: none
  int numa = -1;                   // -1: the kernel does not say
  // The bridges above it, root port first. Devices that share a prefix share that path.
  std::vector<std::string> above = {};
  std::optional<int> width = {};         // lanes in use; none where sysfs does not say (guests)
  std::optional<int> max_width = {};     // lanes that it has
  std::optional<double> speed_gts = {};  // falls while a GPU idles
  std::optional<double> max_speed_gts = {};
  // Of a bridge: its ACS control redirects peer-to-peer traffic upwards (PCIe base specification,
  // P2P Request/Completion Redirect). None: no such capability, or only root may read it.
  std::optional<bool> acs_redirects = {};
  // Of a network card: it may send relaxed-ordering packets (Device Control, bit 4). None: as
  // above.
  std::optional<bool> relaxed_ordering = {};
  // Address translation services are on (ATS Control, bit 15): then peer-to-peer packets may keep
  // to the switch although ACS is on. None: no such capability, or only root may read it.
  std::optional<bool> ats = {};
  std::optional<int> iommu_group = {};
  bool operator==(const PciDevice&) const = default;
};

struct Pci {
  std::vector<PciDevice> devices = {};  // by address
  bool config_readable = false;         // else acs_redirects is not known, which proves nothing
  bool virtual_machine = false;         // the CPU says that a hypervisor runs beneath
  std::string iommu = {};  // "translated" (DMA, DMA-FQ), "identity", or empty: none in use
  bool operator==(const Pci&) const = default;
};

template <class V, Is<PciDevice> T>
void fields(V& v, T& x) {
  v("address", x.address);
  v("vendor", x.vendor);
  v("device", x.device);
  v("class", x.device_class);
  v("driver", x.driver);
  v("numa", x.numa);
  v("above", x.above);
  v("width", x.width);
  v("max_width", x.max_width);
  v("speed_gts", x.speed_gts);
  v("max_speed_gts", x.max_speed_gts);
  v("acs_redirects", x.acs_redirects);
  v("relaxed_ordering", x.relaxed_ordering);
  v("ats", x.ats);
  v("iommu_group", x.iommu_group);
}
template <class V, Is<Pci> T>
void fields(V& v, T& x) {
  v("devices", x.devices);
  v("config_readable", x.config_readable);
  v("virtual_machine", x.virtual_machine);
  v("iommu", x.iommu);
}

}  // namespace distdoctor
