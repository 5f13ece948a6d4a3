#include "collect/platform.h"

#include "base/text.h"

#include <array>

namespace distdoctor::collect {
namespace {

struct Clue {
  std::string_view vendor;   // how it begins
  std::string_view product;  // how it begins
  std::string_view name;
};

// As systemd-detect-virt(1) tells them apart (src/basic/virt.c), and cloud-init's ds-identify.
constexpr std::array<Clue, 7> kHypervisors = {
    {{"Microsoft Corporation", "Virtual Machine", "hyper-v"},
     {"Xen", "", "xen"},
     {"VMware", "", "vmware"},
     {"QEMU", "", "kvm"},
     {"Amazon EC2", "", "kvm"},
     {"Google", "Google Compute Engine", "kvm"},
     {"", "KVM", "kvm"}}};
constexpr std::string_view kAzureTag = "7783-7084-3265-9085-8269-3286-77";
constexpr std::string_view kOracleTag = "OracleCloud.com";

}  // namespace

Board read_board(const machine::FileTree& files) {
  const std::string folder = "/sys/class/dmi/id/";
  return {.vendor = files.word(folder + "sys_vendor"),
          .product = files.word(folder + "product_name"),
          .bios = files.word(folder + "bios_vendor"),
          .asset_tag = files.word(folder + "chassis_asset_tag")};
}

bool is_wsl(std::string_view release) {
  return to_lower(release).find("microsoft") != std::string::npos;
}

std::string hypervisor_of(const Board& board, bool guest) {
  if (!guest) return "";  // the same vendors rent out whole machines
  for (const auto& [vendor, product, name] : kHypervisors) {
    if (board.vendor.starts_with(vendor) && board.product.starts_with(product)) {
      return std::string(name);
    }
  }
  return "";
}

std::string cloud_of(const Board& board) {
  if (board.vendor == "Amazon EC2" || board.bios == "Amazon EC2") return "aws";
  if (board.vendor == "Google" && board.product == "Google Compute Engine") return "gcp";
  if (board.asset_tag == kAzureTag) return "azure";
  return board.asset_tag == kOracleTag ? "oci" : "";
}

}  // namespace distdoctor::collect
