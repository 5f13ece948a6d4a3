#include "rules/nccl/rdma.h"

#include "base/text.h"

#include <cstdlib>
#include <string>

namespace distdoctor::rules {

bool rdma_carries_data(const NodeFacts& node, const Settings& settings) {
  if (!node.devices.known() || node.devices->rdma.empty()) return false;
  const auto disabled = settings.find("NCCL_IB_DISABLE");
  if (disabled != settings.end() && std::strtoll(disabled->second.value.c_str(), nullptr, 0) != 0) {
    return false;
  }
  const auto net = settings.find("NCCL_NET");
  return net == settings.end() || to_lower(net->second.value) != "socket";
}

}  // namespace distdoctor::rules
