// Questions that many checks and rules ask of the facts; look-ups only, no judgement.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/finding.h>

#include <algorithm>
#include <cstdlib>
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

inline bool has_address(const NodeFacts& node, const Address& address) {
  return node.links.known() && find_address(*node.links, address).has_value();
}

// Of a process's environment; none where that is not known.
inline std::optional<std::string> variable(const TrainingProcess& process,
                                           const std::string& name) {
  if (!process.env.known()) return std::nullopt;
  const auto found = process.env->find(name);
  return found == process.env->end() ? std::nullopt : std::optional(found->second);
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
    const NcclChoice& nccl = *prediction.nccl;
    if (nccl.bootstrap) all.push_back({Purpose::nccl_bootstrap, *nccl.bootstrap});
    for (const Choice& choice : nccl.net_socket) {
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

// Of two libraries that the job may use it uses one at least: what breaks the one that it surely
// uses, or both, is as severe as given; what breaks only one that it may do without is a notice.
inline Severity capped_by_purposes(const JobSpec& job,
                                   Severity severity,
                                   const std::vector<Purpose>& purposes) {
  bool nccl = job.nccl == Use::no;
  bool gloo = job.gloo == Use::no;
  for (const Purpose purpose : purposes) {
    if (use_of(job, purpose) == Use::yes) return severity;
    (purpose == Purpose::gloo ? gloo : nccl) = true;
  }
  return nccl && gloo ? severity : std::min(severity, Severity::notice);
}

// Whether NCCL would carry a job's data by RDMA (NET/IB), not over sockets: the node has an active
// RDMA port, and neither NCCL_IB_DISABLE nor NCCL_NET speaks against it. The first is a number to
// NCCL (strtoll, base 0): "true" and "yes" are 0. The second is compared without case (net.cc).
inline bool rdma_carries_data(const NodeFacts& node, const Settings& settings) {
  if (!node.devices.known() || node.devices->rdma.empty()) return false;
  const auto disabled = settings.find("NCCL_IB_DISABLE");
  if (disabled != settings.end() && std::strtoll(disabled->second.value.c_str(), nullptr, 0) != 0) {
    return false;
  }
  constexpr std::string_view kSockets = "socket";
  const auto net = settings.find("NCCL_NET");
  return net == settings.end() ||
         !std::ranges::equal(net->second.value, kSockets, [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
         });
}

// Limits, mounts and environment of an ssh login are not the job's: a finding on them is a notice
// at most, unless they were read in the job's own context.
inline Severity capped_by_context(Severity severity, Context context) {
  return is_the_jobs_context(context) ? severity : std::min(severity, Severity::notice);
}

}  // namespace distdoctor
