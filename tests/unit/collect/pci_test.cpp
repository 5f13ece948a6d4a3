#include "collect/pci.h"

#include "collect/collectors.h"
#include "support/gpu_machines.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

Pci pci_of(const machine::CapturedMachine& captured) {
  NodeFacts node;
  collect_pci(*machine::Machine::captured(captured), {}, node);
  return *node.pci;
}

const PciDevice& device_of(const Pci& pci, std::string_view address) {
  const auto found = std::ranges::find(pci.devices, address, &PciDevice::address);
  REQUIRE(found != pci.devices.end());
  return *found;
}

std::string walk(std::initializer_list<std::pair<std::size_t, unsigned>> words) {
  std::string config(4096, '\0');
  for (const auto& [at, value] : words) {
    config[at] = static_cast<char>(value & 0xffU);
    config[at + 1] = static_cast<char>(value >> 8U & 0xffU);
  }
  return config;
}

}  // namespace

TEST_CASE("PCI addresses") {
  CHECK(is_pci_address("0000:1b:00.0"));
  CHECK(is_pci_address("10000:e1:00.0"));  // behind Intel VMD
  for (const std::string_view text : {"", "pci0000:00", "0000:1b:00", "1b:00.0", "0000:1b:00.0x",
                                      "0000:1b:00.0:1", "LNXSYSTM:00"}) {
    CHECK_FALSE(is_pci_address(text));
  }
}

TEST_CASE("bridges above a device") {
  CHECK(parse_bridges_above("../../../devices/pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0") ==
        std::vector<std::string>{"0000:16:01.0", "0000:17:00.0"});
  CHECK(parse_bridges_above("../../../devices/pci0000:00/0000:00:1c.0").empty());
  CHECK(parse_bridges_above("../../../devices/pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/"
                            "10000:01:00.0") ==
        std::vector<std::string>{"0000:00:0e.0", "10000:00:02.0"});
  CHECK(parse_bridges_above("").empty());
}

TEST_CASE("lanes and rates; what the kernel does not know is none") {
  CHECK(parse_lanes("16") == 16);
  for (const std::string_view text : {"", "0", "255", "Unknown", "x16"}) CHECK(!parse_lanes(text));
  CHECK(parse_transfer_rate("16.0 GT/s PCIe") == 16.0);
  CHECK(parse_transfer_rate("2.5 GT/s") == 2.5);
  for (const std::string_view text : {"", "Unknown", "Unknown speed", " GT/s", "x GT/s"}) {
    CHECK(!parse_transfer_rate(text));
  }
}

TEST_CASE("ACS in a config space") {
  CHECK(acs_of_config(fake_config(0x1d)).redirects == true);  // as Linux sets it with an IOMMU
  CHECK(acs_of_config(fake_config(0x08)).redirects == true);  // completions only
  CHECK(acs_of_config(fake_config(0x51)).redirects == false);
  CHECK_FALSE(acs_of_config(fake_config()).redirects.has_value());  // 64 bytes: not root
  CHECK_FALSE(acs_of_config(fake_config()).cut);
  CHECK_FALSE(acs_of_config("").redirects.has_value());
  const auto half = acs_of_config(std::string_view(fake_config(0x1d)).substr(0, 512));
  CHECK(half.cut);
  CHECK_FALSE(half.redirects.has_value());
}

TEST_CASE("lists of capabilities that are none, or go in a circle") {
  CHECK_FALSE(acs_of_config(std::string(256, '\0')).redirects.has_value());
  CHECK_FALSE(acs_of_config(std::string(4096, '\0')).redirects.has_value());
  CHECK_FALSE(acs_of_config(std::string(4096, '\xff')).redirects.has_value());
  CHECK_FALSE(acs_of_config(walk({{0x100, 1}, {0x102, 0x1002}})).redirects.has_value());
  CHECK(acs_of_config(walk({{0x100, 1}, {0x102, 0xffc2}})).cut);
}

TEST_CASE("address translation services in a config space") {
  CHECK(ats_of_config(walk({{0x100, 0x0f}, {0x106, 0x8000}})).on == std::optional(true));
  CHECK(ats_of_config(walk({{0x100, 0x0f}, {0x106, 0x7fff}})).on == std::optional(false));
  const auto second = walk({{0x100, 0x0d}, {0x102, 0x3001}, {0x300, 0x0f}, {0x306, 0x8000}});
  CHECK(ats_of_config(second).on == std::optional(true));
  CHECK(ats_of_config(std::string_view(second).substr(0, 512)).cut);
  CHECK_FALSE(ats_of_config(fake_config(0x1d)).on.has_value());
  CHECK_FALSE(ats_of_config(fake_config()).on.has_value());  // 64 bytes: not root
  CHECK_FALSE(ats_of_config(std::string(4096, '\xff')).on.has_value());
}

TEST_CASE("address translation is asked of GPUs and of network cards") {
  auto captured = fake_hgx_h100();
  const std::string below = "/sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/";
  const auto on = walk({{0x100, 0x0d}, {0x102, 0x3001}, {0x300, 0x0f}, {0x306, 0x8000}});
  captured.files[below + "0000:12:00.0/0000:13:00.0/config"].text = on;
  captured.files[below + "0000:12:01.0/0000:14:00.0/config"].text =
      walk({{0x100, 0x0f}, {0x106, 0x001f}});
  captured.files[below + "config"].text = on;
  const auto pci = pci_of(captured);
  CHECK(device_of(pci, "0000:13:00.0").ats == std::optional(true));
  CHECK(device_of(pci, "0000:14:00.0").ats == std::optional(false));
  CHECK_FALSE(device_of(pci, "0000:11:00.0").ats.has_value());
  CHECK_FALSE(device_of(pci_of(fake_hgx_h100()), "0000:13:00.0").ats.has_value());
}

TEST_CASE("relaxed ordering in a config space") {
  const auto config = fake_card_config(true);
  CHECK(relaxed_ordering_of_config(config) == std::optional(true));
  CHECK(relaxed_ordering_of_config(fake_card_config(false)) == std::optional(false));
  CHECK_FALSE(relaxed_ordering_of_config(config.substr(0, 64)).has_value());  // not root
  CHECK_FALSE(relaxed_ordering_of_config(config.substr(0, 0x69)).has_value());
  CHECK_FALSE(relaxed_ordering_of_config("").has_value());
  CHECK_FALSE(relaxed_ordering_of_config(std::string(256, '\xff')).has_value());
  auto without_list = config;
  without_list[0x06] = 0;
  CHECK_FALSE(relaxed_ordering_of_config(without_list).has_value());
  auto circle = config;
  circle[0x41] = 0x40;
  CHECK_FALSE(relaxed_ordering_of_config(circle).has_value());
}

TEST_CASE("relaxed ordering is asked of network cards, and not of virtual functions") {
  auto captured = fake_hgx_h100();
  CHECK(device_of(pci_of(captured), "0000:14:00.0").relaxed_ordering == std::optional(true));
  CHECK_FALSE(device_of(pci_of(captured), "0000:13:00.0").relaxed_ordering.has_value());
  const std::string card =
      "/sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0";
  captured.files[card + "/physfn"].link = "../0000:14:00.1";
  CHECK_FALSE(device_of(pci_of(captured), "0000:14:00.0").relaxed_ordering.has_value());
}

TEST_CASE("a guest's CPU says so") {
  CHECK(says_hypervisor("processor : 0\nflags\t\t: fpu hypervisor sse\n"));
  CHECK_FALSE(says_hypervisor("model name : hypervisor\nflags : fpu sse\n"));
  CHECK_FALSE(says_hypervisor("Features : fp asimd\n"));
}

TEST_CASE("an HGX machine: GPUs, cards, NVSwitches and the bridges above, with their ACS") {
  const auto pci = pci_of(fake_hgx_h100());
  CHECK(pci.devices.size() == 8 * 6 + 1 + 4);
  CHECK(pci.config_readable);
  CHECK_FALSE(pci.virtual_machine);
  CHECK(pci.iommu == "identity");
  CHECK(device_of(pci, "0000:13:00.0") ==
        PciDevice{.address = "0000:13:00.0",
                  .vendor = 0x10de,
                  .device = 0x2330,
                  .device_class = 0x030200,
                  .driver = "nvidia",
                  .numa = 0,
                  .above = {"0000:10:01.0", "0000:11:00.0", "0000:12:00.0"},
                  .width = 16,
                  .max_width = 16,
                  .speed_gts = 32.0,
                  .max_speed_gts = 32.0,
                  .iommu_group = 10});
  CHECK(device_of(pci, "0000:14:00.0").above.back() == "0000:12:01.0");
  CHECK(device_of(pci, "0000:12:00.0").acs_redirects == true);
  CHECK_FALSE(device_of(pci, "0000:11:00.0").acs_redirects.has_value());
  CHECK(device_of(pci, "0000:12:00.0").above ==
        std::vector<std::string>{"0000:10:01.0", "0000:11:00.0"});
  // Above a card alone nobody asks.
  CHECK_FALSE(device_of(pci, "0000:12:01.0").acs_redirects.has_value());
}

TEST_CASE("other machines: pass-through, a guest, a container, none") {
  const auto a100 = pci_of(fake_a100_pcie());
  CHECK(a100.iommu == "identity");
  CHECK(pci_of(fake_desktop()).iommu == "translated");
  CHECK(device_of(a100, "0000:22:00.0").acs_redirects == false);
  const auto guest = pci_of(fake_cloud_vm());
  CHECK(guest.virtual_machine);
  CHECK(guest.iommu.empty());
  CHECK_FALSE(guest.config_readable);
  CHECK_FALSE(device_of(guest, "0000:10:1c.0").width.has_value());
  CHECK_FALSE(pci_of(fake_docker()).config_readable);
  CHECK(pci_of({}) == Pci{});
  CHECK(pci_of(fake_wsl()).devices.empty());
}

TEST_CASE("a PCI folder that may not be read") {
  machine::CapturedMachine captured;
  captured.files["/sys/bus/pci/devices"].error = 13;
  NodeFacts node;
  collect_pci(*machine::Machine::captured(captured), {}, node);
  CHECK(node.pci.why().kind == Why::denied);
}
