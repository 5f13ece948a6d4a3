#include "collect/network.h"

#include "base/text.h"
#include "collect/bonding.h"
#include "collect/collectors.h"
#include "collect/qos.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace distdoctor::collect {
namespace {

constexpr int kGidsLookedAt = 16;  // of up to 256 in a port's table; the first are the usual ones

// sysfs shows the network namespace of whoever mounted it. An `ip netns exec` mounts its own, but
// nsenter --net alone does not: then eth0 there is another eth0.
bool same_link(const machine::FileTree& files, const std::string& folder, const Link& link) {
  return files.word(folder + "/ifindex") == std::to_string(link.index) &&
         files.word(folder + "/address") == link.mac;
}

void add_files(const machine::Machine& machine,
               const std::map<std::string, std::string>& rdma,
               std::optional<Unknown>& late,
               Link& link) {
  const auto& files = machine.files();
  const auto folder = "/sys/class/net/" + link.name;
  const auto device = rdma.find(link.name);
  if (!same_link(files, folder, link)) return;
  link.speed_mbps = parse_speed(files.word(folder + "/speed"), link.kind);
  link.carrier_downs = parse_int<std::int64_t>(files.word(folder + "/carrier_down_count"));
  if (device == rdma.end()) return;
  link.rdma_device = device->second;
  link.qos = read_qos(machine, link.name, late);
}

// /proc/net is of the network namespace that we are in, unlike sysfs.
std::optional<Bond> read_bond(const machine::FileTree& files, const std::string& name) {
  return parse_bond(files.read("/proc/net/bonding/" + name).value_or(""));
}

}  // namespace

std::optional<int> parse_speed(std::string_view text, LinkKind kind) {
  constexpr std::array kReal = {LinkKind::ethernet, LinkKind::infiniband, LinkKind::bond,
                                LinkKind::team,     LinkKind::vlan,       LinkKind::macvlan,
                                LinkKind::ipvlan};
  if (std::ranges::find(kReal, kind) == kReal.end()) return std::nullopt;
  return parse_int_within<int>(trim(text), 1, 10'000'000);
}

std::map<std::string, std::string> rdma_devices(const machine::FileTree& files) {
  std::map<std::string, std::string> devices;  // by interface; the first source to name it wins
  for (const auto& device : files.names("/sys/class/infiniband")) {
    const auto folder = fmt::format("/sys/class/infiniband/{}", device);
    const auto parent = files.word(folder + "/parent");  // of Soft-RoCE
    if (!parent.empty()) devices.emplace(parent, device);
    for (const auto& name : files.names(folder + "/device/net")) devices.emplace(name, device);
    for (const auto& port : files.names(folder + "/ports")) {
      for (int gid = 0; gid < kGidsLookedAt; ++gid) {
        const auto name =
            files.word(fmt::format("{}/ports/{}/gid_attrs/ndevs/{}", folder, port, gid));
        if (!name.empty()) devices.emplace(name, device);
      }
    }
  }
  return devices;
}

void collect_links(machine::Machine& machine, const CollectRequest& /*request*/, NodeFacts& node) {
  auto links = machine.links();
  if (!links) {
    node.links = unknown_because(links.error());
    return;
  }
  const auto rdma = rdma_devices(machine.files());
  std::optional<Unknown> late;  // once a card kept the kernel waiting
  for (auto& link : *links) {
    add_files(machine, rdma, late, link);
    if (link.kind == LinkKind::bond) link.bond = read_bond(machine.files(), link.name);
  }
  node.links = *std::move(links);
}

void collect_routes(machine::Machine& machine, const CollectRequest& /*request*/, NodeFacts& node) {
  node.routes = observed(machine.routes());
}

void collect_rules(machine::Machine& machine, const CollectRequest& /*request*/, NodeFacts& node) {
  node.rules = observed(machine.rules());
}

void collect_neighbours(machine::Machine& machine,
                        const CollectRequest& /*request*/,
                        NodeFacts& node) {
  node.neighbours = observed(machine.neighbours());
}

}  // namespace distdoctor::collect
