#include "collect/pci.h"

#include <distdoctor/gpus.h>

#include "base/text.h"
#include "collect/collectors.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::string_view kFolder = "/sys/bus/pci/devices/";
constexpr std::uint16_t kNvidia = 0x10de;
constexpr std::size_t kHeader = 64;        // and all that others than root may read
constexpr std::size_t kPlainConfig = 256;  // of a config space, what is not extended

// --- which devices ---

constexpr std::uint32_t kNetwork = 0x02;
constexpr std::uint32_t kOtherBridge = 0x0680;

bool is_network_card(const PciDevice& device) {
  return device.device_class >> 16U == kNetwork;
}

bool is_wanted(const PciDevice& device) {
  const bool nvswitch = device.vendor == kNvidia && device.device_class >> 8U == kOtherBridge;
  return is_gpu(device) || nvswitch || is_network_card(device);
}

// --- one device ---

template <class T>
T hex_word(const machine::FileTree& files, const std::string& path) {
  const auto text = files.word(path);
  const auto digits = after_prefix(text, "0x");
  return digits ? parse_int<T>(*digits, 16).value_or(T{}) : T{};
}

std::string link_name(const machine::FileTree& files, const std::string& path) {
  const auto target = files.read_link(path).value_or("");
  return target.substr(target.rfind('/') + 1);
}

PciDevice read_kind(const machine::FileTree& files, const std::string& address) {
  const auto folder = std::string(kFolder) + address;
  return {.address = address,
          .vendor = hex_word<std::uint16_t>(files, folder + "/vendor"),
          .device = hex_word<std::uint16_t>(files, folder + "/device"),
          .device_class = hex_word<std::uint32_t>(files, folder + "/class")};
}

void read_rest(const machine::FileTree& files, PciDevice& device) {
  const auto folder = std::string(kFolder) + device.address;
  device.driver = link_name(files, folder + "/driver");
  device.numa = parse_int<int>(files.word(folder + "/numa_node")).value_or(-1);
  device.width = parse_lanes(files.word(folder + "/current_link_width"));
  device.max_width = parse_lanes(files.word(folder + "/max_link_width"));
  device.speed_gts = parse_transfer_rate(files.word(folder + "/current_link_speed"));
  device.max_speed_gts = parse_transfer_rate(files.word(folder + "/max_link_speed"));
  device.iommu_group = parse_int<int>(link_name(files, folder + "/iommu_group"));
}

// The bit of a virtual function is reserved, and zero whatever its card does.
std::optional<bool> read_relaxed_ordering(const machine::FileTree& files,
                                          const PciDevice& device,
                                          bool& readable) {
  const auto folder = std::string(kFolder) + device.address;
  if (!is_network_card(device) || files.read_link(folder + "/physfn")) return std::nullopt;
  const auto config = files.read_head(folder + "/config", kPlainConfig);
  if (!config) return std::nullopt;
  readable = readable || config->size() > kHeader;
  return relaxed_ordering_of_config(*config);
}

// --- what is on the way ---

// Most lists end in the first half KiB; reading all 4 KiB takes the kernel a millisecond.
template <class Reading>
Reading read_extended(const machine::FileTree& files,
                      const std::string& address,
                      Reading (*read)(std::string_view),
                      bool& readable) {
  const auto path = std::string(kFolder) + address + "/config";
  Reading reading;
  for (const std::size_t limit : {std::size_t{512}, std::size_t{4096}}) {
    const auto config = files.read_head(path, limit);
    if (!config) return {};
    readable = readable || config->size() > kHeader;
    reading = read(*config);
    if (!reading.cut) break;
  }
  return reading;
}

// Bridges above a GPU are asked for ACS: only there its answer matters.
std::vector<PciDevice> read_bridges(const machine::FileTree& files,
                                    const std::vector<PciDevice>& devices,
                                    const std::map<std::string, std::string>& links,
                                    bool& readable) {
  std::map<std::string, bool> above_gpu;
  for (const auto& device : devices) {
    for (const auto& bridge : device.above) above_gpu[bridge] |= is_gpu(device);
  }
  std::vector<PciDevice> bridges;
  for (const auto& [address, ask] : above_gpu) {
    const auto link = links.find(address);
    auto bridge = read_kind(files, address);
    if (link != links.end()) bridge.above = parse_bridges_above(link->second);
    read_rest(files, bridge);
    if (ask)
      bridge.acs_redirects = read_extended(files, address, acs_of_config, readable).redirects;
    bridges.push_back(std::move(bridge));
  }
  return bridges;
}

// The kernel translates addresses in groups of the types DMA and DMA-FQ, and passes them on in
// "identity" (Documentation/ABI/testing/sysfs-kernel-iommu_groups). GPUs count, if there are any.
std::string read_iommu(const machine::FileTree& files, const std::vector<PciDevice>& devices) {
  std::string iommu;
  const bool gpus = std::ranges::any_of(devices, is_gpu);
  for (const auto& device : devices) {
    if (!device.iommu_group || (gpus && !is_gpu(device))) continue;
    const auto group = std::to_string(*device.iommu_group);
    const auto type = files.word("/sys/kernel/iommu_groups/" + group + "/type");
    if (type.starts_with("DMA")) return "translated";
    if (type == "identity") iommu = type;
  }
  return iommu;
}

std::uint16_t half_word(std::string_view bytes, std::size_t offset) {
  const auto low = static_cast<unsigned char>(bytes[offset]);
  const auto high = static_cast<unsigned char>(bytes[offset + 1]);
  return static_cast<std::uint16_t>(low | high << 8U);
}

// Where an extended capability stands, whose first eight bytes are there.
struct Extended {
  std::optional<std::size_t> at = {};
  bool cut = false;  // the list goes on behind the bytes that were read
};

Extended find_extended(std::string_view config, std::uint16_t id) {
  constexpr std::size_t kFirst = 0x100;
  if (config.size() <= kFirst) return {};
  std::size_t at = kFirst;
  // Each capability has eight bytes at least: a longer walk goes in a circle.
  for (std::size_t steps = 0; steps < (4096 - kFirst) / 8; ++steps) {
    if (at + 8 > config.size()) return {.cut = true};
    if (half_word(config, at) == id) return {.at = at};
    at = half_word(config, at + 2) >> 4U;  // version below, next above
    if (at < kFirst) break;
  }
  return {};
}

}  // namespace

bool is_pci_address(std::string_view text) {
  const auto parts = split(text, ':');  // a domain may have more than four digits
  if (parts.size() != 3 || parts[0].size() < 4 || parts[1].size() != 2) return false;
  const auto slot = parts[2];
  return slot.size() == 4 && slot[2] == '.' && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == ':' || c == '.';
         });
}

std::vector<std::string> parse_bridges_above(std::string_view link) {
  std::vector<std::string> bridges;
  for (const auto part : split(link, '/')) {
    if (is_pci_address(part)) bridges.emplace_back(part);
  }
  if (!bridges.empty()) bridges.pop_back();
  return bridges;
}

std::optional<int> parse_lanes(std::string_view text) {
  return parse_int_within<int>(text, 1, 32);
}

std::optional<double> parse_transfer_rate(std::string_view text) {
  const auto unit = text.find(" GT/s");
  return unit == std::string_view::npos ? std::nullopt : parse_double(text.substr(0, unit));
}

AcsReading acs_of_config(std::string_view config) {
  constexpr unsigned kRedirects = 0x0c;  // P2P Request Redirect, P2P Completion Redirect
  const auto found = find_extended(config, 0x000d);
  if (!found.at) return {.cut = found.cut};
  return {.redirects = (half_word(config, *found.at + 6) & kRedirects) != 0};
}

AtsReading ats_of_config(std::string_view config) {
  constexpr unsigned kEnable = 0x8000;
  const auto found = find_extended(config, 0x000f);
  if (!found.at) return {.cut = found.cut};
  return {.on = (half_word(config, *found.at + 6) & kEnable) != 0};
}

std::optional<bool> relaxed_ordering_of_config(std::string_view config) {
  constexpr unsigned kHasList = 0x10;  // of the status register
  constexpr unsigned char kExpress = 0x10;
  constexpr unsigned kEnabled = 0x10;
  if (config.size() <= kHeader || (half_word(config, 0x06) & kHasList) == 0) return std::nullopt;
  std::size_t at = static_cast<unsigned char>(config[0x34]) & 0xfcU;
  // Each capability has four bytes at least: a longer walk goes in a circle.
  for (std::size_t steps = 0; steps < (kPlainConfig - kHeader) / 4; ++steps) {
    if (at < kHeader || at + 10 > config.size()) return std::nullopt;
    if (static_cast<unsigned char>(config[at]) == kExpress) {
      return (half_word(config, at + 8) & kEnabled) != 0;
    }
    at = static_cast<unsigned char>(config[at + 1]) & 0xfcU;
  }
  return std::nullopt;
}

bool says_hypervisor(std::string_view cpuinfo) {
  for (const auto line : split_lines(cpuinfo)) {
    if (!line.starts_with("flags")) continue;
    const auto words = split_words(line);
    return std::ranges::find(words, std::string_view("hypervisor")) != words.end();
  }
  return false;
}

void collect_pci(machine::Machine& machine, const CollectRequest& /*request*/, NodeFacts& node) {
  const auto& files = machine.files();
  const auto found = files.links_in(kFolder.substr(0, kFolder.size() - 1));
  if (!found && found.error().errno_value != ENOENT) {
    node.pci = unknown_because(found.error());
    return;
  }
  Pci pci{.virtual_machine = says_hypervisor(
              files.read_head("/proc/cpuinfo", std::size_t{16} << 10).value_or(""))};
  std::map<std::string, std::string> links;
  if (found) links.insert(found->begin(), found->end());
  for (const auto& [address, link] : links) {
    auto device = read_kind(files, address);
    if (!is_wanted(device)) continue;
    device.above = parse_bridges_above(link);
    read_rest(files, device);
    device.relaxed_ordering = read_relaxed_ordering(files, device, pci.config_readable);
    if (is_gpu(device) || is_network_card(device)) {
      device.ats = read_extended(files, address, ats_of_config, pci.config_readable).on;
    }
    pci.devices.push_back(std::move(device));
  }
  pci.iommu = read_iommu(files, pci.devices);
  auto bridges = read_bridges(files, pci.devices, links, pci.config_readable);
  std::ranges::move(bridges, std::back_inserter(pci.devices));
  std::ranges::sort(pci.devices, {}, &PciDevice::address);
  node.pci = std::move(pci);
}

}  // namespace distdoctor::collect
