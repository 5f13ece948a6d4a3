// Which RDMA ports NCCL takes, and which GID of a RoCE port (NCCL 2.28 transport/net_ib.cc
// ncclIbInitDevices, ncclIbGetGidIndex, ncclUpdateGidIndex; net.cc for NCCL_NET).
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/facts/predicted.h>
#include <distdoctor/job.h>
#include <distdoctor/observed.h>

#include <string_view>

namespace distdoctor::rules {

// Reads node.rdma and NCCL_IB_HCA, NCCL_IB_DISABLE, NCCL_NET, NCCL_IB_GID_INDEX,
// NCCL_IB_ROCE_VERSION_NUM, NCCL_IB_ADDR_FAMILY and NCCL_IB_ADDR_RANGE from `settings`. An empty
// version is taken for today's. Unknown where the devices were not seen.
//
// `used` is in the order of libibverbs, which is that in which the kernel registered the devices:
// by the number of uverbsN. What GIDs a port's table has in places that are not in the facts are
// zero.
Observed<NcclHcas> nccl_hcas(const NodeFacts& node,
                             const Settings& settings,
                             std::string_view nccl_version);

}  // namespace distdoctor::rules
