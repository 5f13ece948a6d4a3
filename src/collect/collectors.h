// The collectors, one function each. See collect.h for what they promise.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/plan.h>

#include "machine/machine.h"

namespace distdoctor::collect {

void collect_identity(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_uptime(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_links(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_routes(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_rules(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_neighbours(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_kernel(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_sockets(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_names(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_shm(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_limits(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_devices(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_processes(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_settings(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_firewall(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_nccl_config(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_nccl_library(machine::Machine& machine,
                          const CollectRequest& request,
                          NodeFacts& node);
void collect_pci(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_gpu(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_kernel_log(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_nvml(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_rdma(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_world(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
void collect_software(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);

}  // namespace distdoctor::collect
