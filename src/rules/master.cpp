#include <distdoctor/facts.h>
#include <distdoctor/views.h>

#include "rules/predict.h"
#include "rules/resolve.h"
#include "rules/torch/rendezvous.h"

#include <algorithm>
#include <set>
#include <string>

namespace distdoctor::rules {

namespace {

// The job's settings, with what only the nodes know of the meeting point.
JobSpec with_what_nodes_know(const JobSpec& job, const std::vector<Prediction>& predictions) {
  JobSpec known = job;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    if (known.settings.contains(name) || known.unresolved.contains(name)) continue;
    for (const Prediction& prediction : predictions) {
      const Setting* setting = find_setting(prediction, name);
      if (setting != nullptr) known.settings.try_emplace(name, *setting);
    }
  }
  return known;
}

std::vector<Address> addresses_of(const std::string& host, const std::vector<NodeFacts>& nodes) {
  std::vector<Address> all;
  const auto add = [&](const Address& address) {
    if (std::ranges::find(all, address) == all.end()) all.push_back(address);
  };
  if (const auto literal = Address::parse(host)) add(*literal);
  for (const NodeFacts& node : nodes) {
    const auto found = resolve(host, node);
    if (found.known()) std::ranges::for_each(*found, add);
  }
  return all;
}

// The one peer that has the address on a link, or "".
std::string owner_of(const Address& address, const std::vector<NodeFacts>& nodes) {
  std::string owner;
  if (address.loopback()) return owner;
  for (const NodeFacts& node : nodes) {
    if (!has_address(node, address)) continue;
    if (!owner.empty()) return "";
    owner = node.host;
  }
  return owner;
}

}  // namespace

std::optional<Master> find_master(const ClusterFacts& cluster,
                                  const std::vector<Prediction>& predictions) {
  const auto meeting = rendezvous_of(with_what_nodes_know(cluster.job, predictions));
  if (!meeting) return std::nullopt;
  Master master{.host = meeting->host,
                .port = meeting->port,
                .addresses = addresses_of(meeting->host, cluster.nodes),
                .endpoint = meeting->endpoint};
  std::set<std::string> owners;
  for (const Address& address : master.addresses) {
    auto owner = owner_of(address, cluster.nodes);
    if (!owner.empty()) owners.insert(std::move(owner));
  }
  if (owners.size() == 1) master.node = *owners.begin();
  return master;
}

}  // namespace distdoctor::rules
