// What the facts say of where the ranks stand and of what can carry their data: which switches can
// matter at all.
#pragma once

#include "bisect/bisect.h"
#include "bisect/series.h"

#include <string>
#include <vector>

namespace distdoctor::bisect {

// One subnet that each node has an interface in.
struct Wire {
  std::vector<std::string> interfaces = {};  // their names, each once, in the order of the nodes
  bool operator==(const Wire&) const = default;
};

struct Shape {
  RunBackend backend = RunBackend::nccl;
  std::vector<RunPlace> places = {};
  std::vector<std::string> nodes = {};  // in order
  bool shared_nodes = false;            // some node has several ranks
  bool nvswitch = false;                // there is one, or none can be ruled out
  bool rdma = false;                    // NCCL may carry data by RDMA
  std::vector<std::string> hcas = {};   // active, on every node
  std::vector<std::string> hcas_in_use = {};
  bool net_plugin = false;  // or one cannot be ruled out
  bool tuner_plugin = false;
  std::vector<Wire> wires = {};
  std::vector<std::string> interfaces_in_use = {};  // that the library takes by itself
  Switches own = {};  // the job's own settings that choose or tune a way of the data

  [[nodiscard]] bool between_nodes() const { return nodes.size() > 1; }
  [[nodiscard]] bool nccl() const { return backend == RunBackend::nccl; }
};

Shape shape_of(const ClusterFacts& cluster, const Options& options);

std::vector<RunPlace> on_node(const std::vector<RunPlace>& places, const std::string& node);
std::vector<RunPlace> without(const std::vector<RunPlace>& places,
                              const std::vector<RunPlace>& left_out);

}  // namespace distdoctor::bisect
