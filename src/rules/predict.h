// The predict stage: what the libraries would choose on every node, and what would be right.
// Pure; the coordinator's, so that recorded facts are judged by today's rules.
#pragma once

#include <distdoctor/facts.h>

#include <optional>
#include <vector>

namespace distdoctor::rules {

// The settings in force on a node. What was said of the job, by command line or option, holds
// everywhere; then the node's own live processes of this job, then its own environment, go before
// what the coordinator inherited; NCCL's config files come last and give NCCL_ variables only.
Settings settings_in_force(const JobSpec& job, const NodeFacts& node);

// `job` in force on this node alone. An unknown NCCL is taken for today's.
Prediction predict_node(const JobSpec& job, const NodeFacts& node);

// Where the job's ranks, or torchrun's agents, meet. An address belongs to the one peer whose links
// hold it: loopback and what several peers hold belong to nobody.
std::optional<Master> find_master(const ClusterFacts& cluster,
                                  const std::vector<Prediction>& predictions);

// NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME where the choice in force is wrong, or slower than it
// need be: one list for all nodes, else a value for each, tried with the libraries' own rules on
// every node that was seen. The addresses that it leads to lie in subnets that all nodes have links
// in, or were dialled from every other node and answered; what was dialled in vain is out. Reads
// cluster.nodes, job and pairs (which may still be empty), not cluster.predicted.
Recommended recommend(const ClusterFacts& cluster, const std::vector<Prediction>& predictions);

// All of the above for all nodes.
Predicted predict(const ClusterFacts& cluster);

}  // namespace distdoctor::rules
