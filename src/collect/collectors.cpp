#include "collect/collectors.h"

#include "collect/collect.h"
#include "collect/site_checks.h"
#include "collect/verbs.h"

#include <array>

namespace distdoctor::collect {
namespace {

template <auto Member>
void give_up(NodeFacts& node, const Unknown& why) {
  node.*Member = why;
}

constexpr std::array kCollectors = {
    Collector{"identity", collect_identity, give_up<&NodeFacts::identity>},
    Collector{"uptime", collect_uptime, give_up<&NodeFacts::uptime_s>},
    Collector{"links", collect_links, give_up<&NodeFacts::links>},
    Collector{"routes", collect_routes, give_up<&NodeFacts::routes>},
    Collector{"rules", collect_rules, give_up<&NodeFacts::rules>},
    Collector{"neighbours", collect_neighbours, give_up<&NodeFacts::neighbours>},
    Collector{"kernel", collect_kernel, give_up<&NodeFacts::kernel>},
    Collector{"sockets", collect_sockets, give_up<&NodeFacts::sockets>},
    Collector{"names", collect_names, give_up<&NodeFacts::names>},
    Collector{"shm", collect_shm, give_up<&NodeFacts::shm>},
    Collector{"limits", collect_limits, give_up<&NodeFacts::limits>},
    Collector{"devices", collect_devices, give_up<&NodeFacts::devices>},
    Collector{"processes", collect_processes, give_up<&NodeFacts::processes>},
    Collector{"settings", collect_settings, give_up<&NodeFacts::settings>},
    Collector{"nccl_config", collect_nccl_config, give_up<&NodeFacts::nccl_config>},
    Collector{"nccl_library", collect_nccl_library, give_up<&NodeFacts::nccl_library>},
    Collector{"pci", collect_pci, give_up<&NodeFacts::pci>},
    Collector{"gpu", collect_gpu, give_up<&NodeFacts::gpu>},
    Collector{"nvml", collect_nvml, give_up<&NodeFacts::nvml>},
    Collector{"kernel_log", collect_kernel_log, give_up<&NodeFacts::kernel_log>},
    Collector{"rdma", collect_rdma, give_up<&NodeFacts::rdma>},
    Collector{"world", collect_world, give_up<&NodeFacts::world>},
    Collector{"software", collect_software, give_up<&NodeFacts::software>},
    Collector{"verbs", collect_verbs, give_up<&NodeFacts::verbs>},
    Collector{"firewall", collect_firewall, give_up<&NodeFacts::firewall>},
    Collector{"site_checks", collect_site_checks, give_up<&NodeFacts::site_checks>},
};

}  // namespace

std::span<const Collector> all_collectors() {
  return kCollectors;
}

}  // namespace distdoctor::collect
