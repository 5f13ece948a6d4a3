// Which RDMA ports NCCL makes one device of (from 2.24 graph/topo.cc ncclTopoAutoMerge and
// net_ib.cc ncclIbMakeVDevice, as 2.28.9 does; 2.20 to 2.23 net_ib.cc alone, in pairs).
#pragma once

#include <distdoctor/facts/predicted.h>
#include <distdoctor/facts/rdma.h>
#include <distdoctor/job.h>

#include <string>
#include <vector>

namespace distdoctor::rules {

// "mlx5_0:1", "mlx5_1:1" of each such device. `used` are the ports in NCCL's order; `minor` is 28
// of 2.28. Reads NCCL_IB_MERGE_NICS and NCCL_IB_MERGE_VFS, and from 2.24 on NCCL_NET_MERGE_LEVEL.
// Empty, too, where a level beyond the card or NCCL_NET_FORCE_MERGE is asked for: what that merges
// hangs on the machine's slots, and is not predicted.
std::vector<std::vector<std::string>> merged_ports(const std::vector<HcaChoice>& used,
                                                   const Rdma& rdma,
                                                   const Settings& settings,
                                                   int minor);

}  // namespace distdoctor::rules
