#include "base/text.h"
#include "collect/collectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace distdoctor::collect {
namespace {

std::vector<std::string> find_gpus(const machine::FileTree& files) {
  std::vector<std::string> gpus;
  for (const auto& name : files.names("/dev")) {
    const auto number = after_prefix(name, "nvidia");
    if (number && parse_int<int>(*number)) gpus.push_back("/dev/" + name);
  }
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes";  // of AMD; CPUs have gpu_id 0
  for (const auto& name : files.names(nodes)) {
    const auto folder = fmt::format("{}/{}", nodes, name);
    const auto id = files.word(folder + "/gpu_id");
    if (!id.empty() && id != "0") gpus.push_back(folder);
  }
  return gpus;
}

bool has_active_port(const machine::FileTree& files, const std::string& device) {
  const auto ports = device + "/ports";
  return std::ranges::any_of(files.names(ports), [&](const std::string& port) {
    return files.word(fmt::format("{}/{}/state", ports, port)).ends_with("ACTIVE");  // "4: ACTIVE"
  });
}

}  // namespace

void collect_devices(machine::Machine& machine,
                     const CollectRequest& /*request*/,
                     NodeFacts& node) {
  const auto& files = machine.files();
  Devices devices{.gpus = find_gpus(files)};
  const std::string folder = "/sys/class/infiniband";
  for (const auto& name : files.names(folder)) {
    if (has_active_port(files, fmt::format("{}/{}", folder, name))) devices.rdma.push_back(name);
  }
  node.devices = std::move(devices);
}

void collect_limits(machine::Machine& machine, const CollectRequest& /*request*/, NodeFacts& node) {
  node.limits = observed(machine.limits());
}

}  // namespace distdoctor::collect
