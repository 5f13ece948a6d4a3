// Whether NCCL would carry a job's data over RDMA (NET/IB) and not over sockets.
#pragma once

#include <distdoctor/facts.h>

namespace distdoctor::rules {

// The node has an active RDMA port, and neither NCCL_IB_DISABLE nor NCCL_NET speaks against it.
// NCCL_IB_DISABLE is a number to NCCL (strtoll, base 0): "true" and "yes" are 0, and disable
// nothing.
bool rdma_carries_data(const NodeFacts& node, const Settings& settings);

}  // namespace distdoctor::rules
