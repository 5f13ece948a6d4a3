// GPUs as their kernel drivers tell of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::collect {

struct NvidiaModule {
  std::string version = {};  // "550.54.15"
  bool open = false;         // the open kernel module
  bool operator==(const NvidiaModule&) const = default;
};
// Of /proc/driver/nvidia/version: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue
// ..." or "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build ...".
std::optional<NvidiaModule> parse_nvidia_version(std::string_view text);

// "Key: \t value" lines, as in /proc/driver/nvidia/gpus/*/information.
std::map<std::string, std::string> parse_information(std::string_view text);

// "name number" lines of /sys/class/kfd/kfd/topology/nodes/N/properties.
std::map<std::string, std::uint64_t> parse_kfd_properties(std::string_view text);
// "0000:1b:00.0" of KFD's domain and location_id (bus, device and function as one number).
std::string kfd_pci_address(std::uint64_t domain, std::uint64_t location);

}  // namespace distdoctor::collect
