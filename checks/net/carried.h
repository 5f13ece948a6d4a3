// The links that carry the job's data by TCP, and how fast they say that they are. Look-ups that
// the checks of speeds share; no judgement.
#pragma once

#include "chosen.h"

namespace distdoctor::checks {

struct Library {
  const char* name;
  const char* variable;
  Use use;
};

inline std::vector<Choice> data_choices(const Library& library, const Prediction& prediction) {
  if (library.variable == std::string_view("GLOO_SOCKET_IFNAME")) {
    return prediction.gloo.known() ? prediction.gloo->devices : std::vector<Choice>{};
  }
  return prediction.nccl.known() ? prediction.nccl->net_socket : std::vector<Choice>{};
}

// A node's links that carry the data, with their speeds added up: the libraries stripe.
struct InUse {
  const NodeFacts* node;
  std::vector<std::string> links;
  int mbps;
};

inline std::optional<InUse> in_use(const Case& c, const Library& library, const NodeFacts& node) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  if (prediction == nullptr || !node.links.known()) return std::nullopt;
  InUse use{.node = &node, .links = {}, .mbps = 0};
  for (const Choice& choice : data_choices(library, *prediction)) {
    const Link* link = find_link(*node.links, choice.interface);
    if (link == nullptr || !link->speed_mbps) return std::nullopt;
    use.links.push_back(link->name);
    use.mbps += *link->speed_mbps;
  }
  if (use.links.empty()) return std::nullopt;
  return use;
}

inline std::string speed_text(int mbps) {
  return mbps % 1000 == 0 ? fmt::format("{} Gb/s", mbps / 1000) : fmt::format("{} Mb/s", mbps);
}

// "eth0 (1 Gb/s)".
inline std::string carried_by(const InUse& use) {
  return fmt::format("{} ({})", fmt::join(use.links, " and "), speed_text(use.mbps));
}

// Whose data goes by TCP, as far as it is known.
inline std::vector<Library> carrying_data(const Case& c, Judge& judge) {
  std::vector<Library> libraries;
  if (c.cluster.nodes.size() < 2) return libraries;
  bool devices_seen = true;
  for (const NodeFacts& node : c.cluster.nodes) {
    judge.see(node, "net.links", node.links);
    devices_seen = judge.see(node, "devices", node.devices) != nullptr && devices_seen;
  }
  const JobSpec& job = c.cluster.job;
  if (job.nccl != Use::no && devices_seen && !rdma_carries_data(c)) {
    libraries.push_back({"NCCL", "NCCL_SOCKET_IFNAME", job.nccl});
  }
  if (job.gloo == Use::yes && job.nccl != Use::yes) {
    libraries.push_back({"Gloo", "GLOO_SOCKET_IFNAME", job.gloo});
  }
  return libraries;
}

}  // namespace distdoctor::checks
