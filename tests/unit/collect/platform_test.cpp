#include "collect/platform.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

struct Row {
  std::string_view name;
  Board board;
  bool guest;
  std::string hypervisor;
  std::string cloud;
};

const std::vector<Row> kRows = {
    {"AWS",
     {.vendor = "Amazon EC2", .product = "p5.48xlarge", .bios = "Amazon EC2"},
     true,
     "kvm",
     "aws"},
    {"AWS, a whole machine", {.vendor = "Amazon EC2", .product = "i3.metal"}, false, "", "aws"},
    {"Google", {.vendor = "Google", .product = "Google Compute Engine"}, true, "kvm", "gcp"},
    {"a laptop of Google's", {.vendor = "Google", .product = "Atlas"}, false, "", ""},
    {"Azure",
     {.vendor = "Microsoft Corporation",
      .product = "Virtual Machine",
      .asset_tag = "7783-7084-3265-9085-8269-3286-77"},
     true,
     "hyper-v",
     "azure"},
    {"Hyper-V at home",
     {.vendor = "Microsoft Corporation", .product = "Virtual Machine"},
     true,
     "hyper-v",
     ""},
    {"a computer of Microsoft's",
     {.vendor = "Microsoft Corporation", .product = "Surface Pro"},
     false,
     "",
     ""},
    {"Oracle", {.vendor = "QEMU", .asset_tag = "OracleCloud.com"}, true, "kvm", "oci"},
    {"VMware", {.vendor = "VMware, Inc."}, true, "vmware", ""},
    {"Xen", {.vendor = "Xen", .product = "HVM domU"}, true, "xen", ""},
    {"KVM that says so", {.vendor = "Red Hat", .product = "KVM"}, true, "kvm", ""},
    {"another one", {}, true, "", ""},
    {"hardware", {.vendor = "Supermicro", .product = "SYS-821GE"}, false, "", ""},
};

}  // namespace

TEST_CASE("what a machine runs on, and whose it is") {
  for (const auto& row : kRows) {
    CAPTURE(row.name);
    CHECK(hypervisor_of(row.board, row.guest) == row.hypervisor);
    CHECK(cloud_of(row.board) == row.cloud);
  }
}

TEST_CASE("Windows Subsystem for Linux") {
  CHECK(is_wsl("5.15.153.1-microsoft-standard-WSL2"));
  CHECK(is_wsl("4.4.0-19041-Microsoft"));
  CHECK_FALSE(is_wsl("6.8.0-1015-azure"));
}
