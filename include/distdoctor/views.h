// Questions that many checks and rules ask of the facts; look-ups only, no judgement.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/finding.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

inline const NodeFacts* find_node(const ClusterFacts& cluster, std::string_view host) {
  const auto found = std::ranges::find(cluster.nodes, host, &NodeFacts::host);
  return found == cluster.nodes.end() ? nullptr : &*found;
}

inline const Prediction* find_prediction(const ClusterFacts& cluster, std::string_view host) {
  const auto found = std::ranges::find(cluster.predicted.nodes, host, &Prediction::node);
  return found == cluster.predicted.nodes.end() ? nullptr : &*found;
}

inline const PairFacts* find_pair(const ClusterFacts& cluster,
                                  std::string_view from,
                                  std::string_view to) {
  const auto found = std::ranges::find_if(
      cluster.pairs, [&](const PairFacts& pair) { return pair.from == from && pair.to == to; });
  return found == cluster.pairs.end() ? nullptr : &*found;
}

// A link by its name, or by the label of one of its addresses ("eth0:1").
inline const Link* find_link(const std::vector<Link>& links, std::string_view name) {
  for (const Link& link : links) {
    if (link.name == name) return &link;
    for (const LinkAddress& address : link.addresses) {
      if (address.label == name) return &link;
    }
  }
  return nullptr;
}

// The link that has the address, with the address's own row.
struct AddressOnLink {
  const Link* link;
  const LinkAddress* address;
};
inline std::optional<AddressOnLink> find_address(const std::vector<Link>& links,
                                                 const Address& wanted) {
  for (const Link& link : links) {
    for (const LinkAddress& row : link.addresses) {
      if (row.address.bytes == wanted.bytes && row.address.v6 == wanted.v6) return {{&link, &row}};
    }
  }
  return std::nullopt;
}

// The setting in force on a node, or none.
inline const Setting* find_setting(const Prediction& prediction, const std::string& name) {
  const auto found = prediction.settings.find(name);
  return found == prediction.settings.end() ? nullptr : &found->second;
}

// An address that a library of this job would announce to the peers, and what for.
struct Announced {
  Purpose purpose;
  Choice choice;
  bool operator==(const Announced&) const = default;
};

// What the libraries that this job uses, or may use, announce on a node; each address of a purpose
// once. Empty where nothing could be predicted.
inline std::vector<Announced> announced(const JobSpec& job, const Prediction& prediction) {
  std::vector<Announced> all;
  if (job.nccl != Use::no && prediction.nccl.known()) {
    if (prediction.nccl->bootstrap) {
      all.push_back({Purpose::nccl_bootstrap, *prediction.nccl->bootstrap});
    }
    for (const Choice& choice : prediction.nccl->net_socket) {
      all.push_back({Purpose::nccl_data, choice});
    }
  }
  if (job.gloo != Use::no && prediction.gloo.known()) {
    for (const Choice& choice : prediction.gloo->devices) all.push_back({Purpose::gloo, choice});
  }
  return all;
}

// Whether a finding about what only this library does may be more than a notice.
inline Use use_of(const JobSpec& job, Purpose purpose) {
  if (purpose == Purpose::gloo) return job.gloo;
  return purpose == Purpose::master ? Use::yes : job.nccl;
}

// Limits, mounts and environment of an ssh login are not the job's: a finding on them is a notice
// at most, unless they were read in the job's own context.
inline Severity capped_by_context(Severity severity, Context context) {
  return is_the_jobs_context(context) ? severity : std::min(severity, Severity::notice);
}

}  // namespace distdoctor
