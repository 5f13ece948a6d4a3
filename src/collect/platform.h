// What a machine itself runs on: hardware, a hypervisor, Windows; whose cloud.
#pragma once

#include "machine/file_tree.h"

#include <string>
#include <string_view>

namespace distdoctor::collect {

// Of /sys/class/dmi/id; empty where a file is not there.
struct Board {
  std::string vendor = {};     // sys_vendor
  std::string product = {};    // product_name
  std::string bios = {};       // bios_vendor
  std::string asset_tag = {};  // chassis_asset_tag
  bool operator==(const Board&) const = default;
};
Board read_board(const machine::FileTree& files);

// "wsl" by the kernel's release: "5.15.153.1-microsoft-standard-WSL2", "4.4.0-19041-Microsoft".
bool is_wsl(std::string_view release);
// "kvm", "hyper-v", "xen", "vmware", or "". `guest`: the CPU says so.
std::string hypervisor_of(const Board& board, bool guest);
std::string cloud_of(const Board& board);  // "aws", "gcp", "azure", "oci", or ""

}  // namespace distdoctor::collect
