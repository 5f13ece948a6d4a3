// RDMA devices as programs see them, through a helper (vendor verbs).
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/plan.h>

#include "machine/machine.h"

namespace distdoctor::collect {

// Asked only where the kernel knows a device.
void collect_verbs(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);

}  // namespace distdoctor::collect
