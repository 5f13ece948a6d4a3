#include "rules/recommend/candidates.h"

#include <distdoctor/views.h>

#include "rules/interface_addresses.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace distdoctor::rules {

namespace {

int plainness_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::ethernet:
    case LinkKind::infiniband:
    case LinkKind::bond:
    case LinkKind::team:
    case LinkKind::vlan:
    case LinkKind::veth:  // a container's own NIC
    case LinkKind::macvlan:
    case LinkKind::ipvlan:
      return 0;
    case LinkKind::bridge:
      return 1;
    default:
      return 2;
  }
}

struct Usable {
  std::string name;
  Address address;
  int prefix;
  const Link* link;
};

std::vector<Usable> usable_addresses(const NodeFacts& node) {
  std::vector<Usable> all;
  for (const InterfaceAddress& row : interface_addresses(*node.links)) {
    const auto found = find_address(*node.links, row.address);
    if (found && usable(*found->link, *found->address)) {
      all.push_back({row.name, row.address, row.prefix, row.link});
    }
  }
  return all;
}

void add(Candidate& candidate, const Usable& chosen, const std::optional<Master>& master) {
  const int speed = chosen.link->speed_mbps.value_or(0);
  const bool first = candidate.interfaces.empty();
  candidate.interfaces.push_back(chosen.name);
  candidate.plainness = std::max(candidate.plainness, plainness_of(chosen.link->kind));
  candidate.speed_mbps = first ? speed : std::min(candidate.speed_mbps, speed);
  if (!master) return;
  for (const LinkAddress& row : chosen.link->addresses) {
    const auto& dialled = master->addresses;
    candidate.masters |= std::ranges::find(dialled, row.address) != dialled.end();
  }
}

// Takes the first address of each node that fits; none where a node has no such address.
template <class Fits>
std::optional<Candidate> candidate_where(const std::vector<std::vector<Usable>>& nodes,
                                         const std::optional<Master>& master,
                                         Fits fits) {
  Candidate candidate;
  for (const std::vector<Usable>& node : nodes) {
    const auto chosen = std::ranges::find_if(node, fits);
    if (chosen == node.end()) return std::nullopt;
    add(candidate, *chosen, master);
  }
  return candidate;
}

}  // namespace

std::vector<Candidate> find_candidates(const std::vector<SeenNode>& seen,
                                       const Reachability& reachability,
                                       const std::optional<Master>& master) {
  std::vector<std::vector<Usable>> nodes;
  for (const SeenNode& node : seen) nodes.push_back(usable_addresses(*node.node));
  std::vector<Candidate> all;
  const auto keep = [&all](std::optional<Candidate> candidate) {
    const bool known = candidate && std::ranges::find(all, candidate->interfaces,
                                                      &Candidate::interfaces) != all.end();
    if (candidate && !known) all.push_back(*std::move(candidate));
  };
  for (const Usable& lead : nodes.front()) {
    const Network network = network_of(lead.address, lead.prefix);
    if (reachability.common(network)) {
      auto found = candidate_where(nodes, master, [&](const Usable& other) {
        return network_of(other.address, other.prefix) == network;
      });
      if (found) found->network = network.text();
      keep(std::move(found));
    }
    keep(candidate_where(nodes, master,
                         [&](const Usable& other) { return other.name == lead.name; }));
  }
  std::ranges::stable_sort(all, std::less<>(), [](const Candidate& candidate) {
    return std::tuple(candidate.plainness, -candidate.speed_mbps, !candidate.masters);
  });
  return all;
}

int carried_mbps(const std::vector<SeenNode>& seen, const Choices& choices) {
  std::optional<int> slowest;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    int sum = 0;
    std::set<const Link*> links;
    for (const Choice& choice : choices[i]) {
      const Link* link = find_link(*seen.at(i).node->links, choice.interface);
      if (link == nullptr || !link->speed_mbps) return 0;
      if (links.insert(link).second) sum += *link->speed_mbps;
    }
    slowest = std::min(slowest.value_or(sum), sum);
  }
  return slowest.value_or(0);
}

}  // namespace distdoctor::rules
