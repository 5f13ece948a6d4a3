// GPUs and NVSwitches among a node's PCI devices, and how they are called in findings.
// Look-ups that the checks of this folder share; no judgement.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::checks::gpu {

inline constexpr std::uint16_t kNvidia = 0x10de;
inline constexpr std::uint16_t kAmd = 0x1002;

inline bool is_nvidia_gpu(const PciDevice& device) {
  const auto kind = device.device_class >> 8U;
  return device.vendor == kNvidia && (kind == 0x0300 || kind == 0x0302);
}
inline bool is_amd_accelerator(const PciDevice& device) {
  return device.vendor == kAmd && device.device_class >> 8U == 0x1200;
}
inline bool is_nvswitch(const PciDevice& device) {
  return device.vendor == kNvidia && device.device_class >> 8U == 0x0680;
}

template <class Wanted>
std::vector<const PciDevice*> devices_that(const Pci& pci, Wanted wanted) {
  std::vector<const PciDevice*> found;
  for (const PciDevice& device : pci.devices) {
    if (wanted(device)) found.push_back(&device);
  }
  return found;
}

inline const PciDevice* find_device(const Pci& pci, std::string_view address) {
  const auto found = std::ranges::find(pci.devices, address, &PciDevice::address);
  return found == pci.devices.end() ? nullptr : &*found;
}

inline const Gpu* find_gpu(const GpuFacts& facts, std::string_view address) {
  const auto found = std::ranges::find(facts.gpus, address, &Gpu::pci);
  return found == facts.gpus.end() ? nullptr : &*found;
}

inline std::size_t count_of(const GpuFacts& facts, GpuVendor vendor) {
  return static_cast<std::size_t>(std::ranges::count(facts.gpus, vendor, &Gpu::vendor));
}

// "node1/0000:1b:00.0", as subjects name a device.
inline std::string device_name(const NodeFacts& node, const std::string& address) {
  return node.host + "/" + address;
}

inline bool in_container(const NodeFacts& node) {
  return node.identity.known() && !node.identity->container.empty();
}

// What breaks GPUs breaks a job that uses them; one that only uses Gloo may do without.
inline Severity capped_by_nccl(const JobSpec& job, Severity severity) {
  return job.nccl == Use::no ? std::min(severity, Severity::notice) : severity;
}

// NCCL_P2P_DISABLE as NCCL takes it: only for 1 does it go other ways ("0x1" is 1, "true" is 0).
inline bool peer_access_off(const ClusterFacts& cluster, const NodeFacts& node) {
  const Prediction* prediction = find_prediction(cluster, node.host);
  return prediction != nullptr &&
         std::ranges::any_of(prediction->variables, [](const VariableReading& reading) {
           return reading.name == "NCCL_P2P_DISABLE" && reading.taken_as == "1";
         });
}

inline std::string plural(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

inline Fix by_hand(const NodeFacts& node, std::string text) {
  return {.node = node.host, .kind = Fix::Kind::manual, .text = std::move(text)};
}

}  // namespace distdoctor::checks::gpu
