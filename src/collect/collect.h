// Reads a node: each collector fills its own members of NodeFacts and nothing else. It sees and
// does not judge. What it cannot read becomes Unknown with what was tried; it never throws for it.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/plan.h>

#include <span>
#include <string_view>

namespace distdoctor::machine {
class Machine;
}

namespace distdoctor::collect {

struct Collector {
  std::string_view name;  // "links"; the agent runs each in a thread of its own
  void (*run)(machine::Machine& machine, const CollectRequest& request, NodeFacts& node);
  // For a collector that did not end in time or threw: its members become this Unknown.
  void (*give_up)(NodeFacts& node, const Unknown& why);
};

// identity, uptime, links, routes, rules, neighbours, kernel, sockets, names, shm, limits, devices,
// processes, settings, nccl_config, nccl_library, pci, gpu, nvml, kernel_log, rdma, verbs, world,
// software, firewall
std::span<const Collector> all_collectors();

}  // namespace distdoctor::collect
