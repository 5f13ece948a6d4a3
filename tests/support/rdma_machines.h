// Machines with RDMA devices as their sysfs shows them, written by hand: no such hardware is here.
// The shapes follow public documents, named at each.
#pragma once

#include "machine/captured.h"

#include <string>
#include <vector>

namespace distdoctor::testing {

struct FakeGid {
  int index = 0;
  std::string gid = {};
  std::string type = "RoCE v2";
  std::string netdev = {};
};

// A device with one port.
struct FakeHca {
  std::string name = "mlx5_0";
  int uverbs = 0;
  std::string pci = "0000:18:00.0";  // empty: none is behind it
  std::string driver = "mlx5_core";
  std::string state = "4: ACTIVE";
  std::string physical = "5: LinkUp";
  std::string layer = "InfiniBand";
  std::string rate = "400 Gb/sec (4X NDR)";
  std::string lid = "0x1c";
  std::string sm_lid = "0x1";
  std::string firmware = "28.39.1002";
  std::vector<FakeGid> gids = {};
  std::vector<std::string> pkeys = {"0xffff"};
  bool node = true;  // /dev/infiniband/uverbsN is there
};

void add_hca(machine::CapturedMachine& machine, const FakeHca& hca);
// libibverbs and the providers, as Debian's libibverbs1 and ibverbs-providers install them.
void add_verbs(machine::CapturedMachine& machine, const std::vector<std::string>& providers);

// The four places that an Ethernet port with one IPv4 address has ("10.0.0.6"), as show_gids of
// MLNX_OFED prints them: link-local v1 and v2, then the address v1 and v2.
std::vector<FakeGid> roce_gids(const std::string& netdev, const std::string& v4, int host);

// Eight 400 Gb/s InfiniBand HCAs and two Ethernet ports for storage: NVIDIA DGX H100 user guide,
// "Network connections, cables and adaptors" (mlx5_0, 3, 4, 5, 6, 9, 10, 11 are the compute ones).
machine::CapturedMachine h100_with_infiniband();
// Eight single-port 100 Gb/s RoCE v2 HCAs: the OCI documents of BM.GPU4.8 list more ports of the
// same kind. Their interfaces are set up for lossless RoCE as NVIDIA's "Recommended Network
// Configuration Examples for RoCE Deployment" has it.
machine::CapturedMachine a100_with_roce(int host);
// Soft-RoCE on a VM's netdev: rdma-core's Documentation/rxe.md.
machine::CapturedMachine vm_with_soft_roce(int host);
// Four EFA devices: the efa driver's own documents (amzn-drivers, kernel/linux/efa).
machine::CapturedMachine vm_with_efa();
// A container on the H100 node that was started without --device=/dev/infiniband: sysfs is the
// host's (NVIDIA Container Toolkit, NCCL user guide "Troubleshooting").
machine::CapturedMachine container_without_devices();

}  // namespace distdoctor::testing
