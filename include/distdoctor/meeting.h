// Where a launch, or a rank's MASTER_ADDR, leads to; look-ups that checks and rules share.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor {

// One call a node, which numbers its ranks and says where they meet.
inline bool starts_ranks_of_a_node(const Launch& launch) {
  return launch.kind == LauncherKind::torchrun || launch.kind == LauncherKind::torch_launch ||
         launch.kind == LauncherKind::accelerate || launch.kind == LauncherKind::deepspeed;
}

// It meets nobody, whatever its endpoint and on however many nodes it runs.
inline bool for_one_node(const Launch& launch) {
  return launch.standalone ||
         (starts_ranks_of_a_node(launch) && launch.nnodes_max && *launch.nnodes_max <= 1);
}

// Whether a worker's launcher says that its job needs no other node: torchrun and Open MPI count
// the ranks that are here, Slurm the nodes (a program may go on from there, but not by loopback).
inline bool alone_on_its_node(const TrainingProcess& process) {
  const auto said = [&](const char* name) { return variable(process, name).value_or(""); };
  const std::string size = said("WORLD_SIZE");
  const std::string master = said("MASTER_ADDR");
  if (said("GROUP_WORLD_SIZE") == "1") return true;
  if (!size.empty() && said("LOCAL_WORLD_SIZE") == size) return true;
  const std::string mpi = said("OMPI_COMM_WORLD_SIZE");
  if (size.empty() && !mpi.empty() && said("OMPI_COMM_WORLD_LOCAL_SIZE") == mpi) return true;
  return said("SLURM_JOB_NUM_NODES") == "1" && (master == "localhost" || master == "127.0.0.1");
}

// A peer, by its name as given, or what no peer has: an address, or a name that nobody looked up.
struct Leads {
  std::string to = {};
  bool to_a_peer = false;
  bool operator==(const Leads&) const = default;
};

namespace meeting_detail {

inline Leads by_address(const std::vector<NodeFacts>& nodes,
                        const NodeFacts& from,
                        const Address& address) {
  if (address.loopback() || address.unspecified() || has_address(from, address)) {
    return {from.host, true};
  }
  const auto owner = std::ranges::find_if(
      nodes, [&](const NodeFacts& node) { return has_address(node, address); });
  return owner == nodes.end() ? Leads{address.text(), false} : Leads{owner->host, true};
}

// "node0" and "node0.cluster.local" are one machine's.
inline bool one_name(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return !a.empty() && b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '.');
}

inline Leads by_name(const std::vector<NodeFacts>& nodes, const std::string& name) {
  const auto called_so = [&](const NodeFacts& node) {
    return node.host == name || (node.identity.known() && one_name(node.identity->hostname, name));
  };
  const auto owner = std::ranges::find_if(nodes, called_so);
  return owner == nodes.end() ? Leads{name, false} : Leads{owner->host, true};
}

}  // namespace meeting_detail

// Where a host, by name or by address, leads to from a node: as that node resolved it, else by the
// peers' own names. Loopback is the node itself.
inline Leads leads(const std::vector<NodeFacts>& nodes,
                   const NodeFacts& from,
                   const std::string& host) {
  if (host == "localhost") return {from.host, true};
  if (const auto literal = Address::parse(host)) {
    return meeting_detail::by_address(nodes, from, *literal);
  }
  std::vector<Address> found;
  if (from.names.known()) {
    const auto row = std::ranges::find(*from.names, host, &Resolution::name);
    if (row != from.names->end() && row->all.known()) found = *row->all;
  }
  if (found.empty()) return meeting_detail::by_name(nodes, host);
  for (const Address& address : found) {
    if (Leads led = meeting_detail::by_address(nodes, from, address); led.to_a_peer) return led;
  }
  return {found.front().text(), false};
}

}  // namespace distdoctor
