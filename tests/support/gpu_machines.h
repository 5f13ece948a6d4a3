// Captured machines with GPUs, as public documentation shows such machines. There is no GPU here:
// what they answer is typed by hand, and no kernel ever said it to us.
#pragma once

#include "machine/captured.h"

#include <string>
#include <string_view>

namespace distdoctor::testing {

struct FakePci {
  std::string path = {};  // below /sys/devices: "pci0000:16/0000:16:01.0/0000:17:00.0"
  std::string vendor = "0x10de";
  std::string device = "0x2330";
  std::string device_class = "0x030200";
  std::string driver = "nvidia";  // empty: none
  int width = 16;
  int max_width = 16;
  std::string speed = "32.0 GT/s PCIe";
  int numa = 0;
  int group = -1;           // of the IOMMU
  std::string config = {};  // bytes; empty: nobody may read it
};

void add_fake_pci(machine::CapturedMachine& captured, const FakePci& device);
// 64 bytes of header; with `acs` its control register in an extended capability list after another
// capability, as a switch port has them.
std::string fake_config();
std::string fake_config(unsigned acs);
// The 256 bytes of a card, with a PCI Express capability behind another one, as lspci -xxx shows
// a ConnectX.
std::string fake_card_config(bool relaxed_ordering);
void add_fake_nvidia_driver(machine::CapturedMachine& captured,
                            const std::string& version,
                            bool open);
void add_fake_nvidia_gpu(machine::CapturedMachine& captured,
                         const std::string& address,
                         int minor,
                         const std::string& model);

// Eight H100 SXM5 with eight InfiniBand cards, a PCIe switch for each pair, four NVSwitches; ACS
// as Linux sets it, and an IOMMU that passes addresses on (iommu=pt). Shape: NVIDIA's DGX H100 user
// guide, `nvidia-smi topo -m` there.
machine::CapturedMachine fake_hgx_h100();
// Four A100 80GB PCIe, two to a root port, IOMMU in pass-through mode.
machine::CapturedMachine fake_a100_pcie();
// A virtual machine with eight A100 SXM4 passed through, each on the root bus: AWS p4d and kin.
machine::CapturedMachine fake_cloud_vm();
// One idle GeForce RTX 4090: its link has gone down to 2.5 GT/s.
machine::CapturedMachine fake_desktop();
// Two GeForce RTX 4090 side by side: no NVLink, and a driver that denies access between them.
machine::CapturedMachine fake_two_rtx();
// Eight MI300X in one xGMI hive: AMD's documentation of KFD's topology folder.
machine::CapturedMachine fake_mi300x();
// The HGX machine from inside a container with all GPUs: no kernel log, 64 bytes of config space.
machine::CapturedMachine fake_docker();
// WSL 2: no NVIDIA module, a paravirtual adapter, libraries in /usr/lib/wsl/lib.
machine::CapturedMachine fake_wsl();
machine::CapturedMachine fake_without_gpu();

}  // namespace distdoctor::testing
