// Which layer is broken or slow, and where: from the runs so far to the next run, or to what they
// prove. Pure: the same facts give the same step, and acting it out is somebody else's.
#pragma once

#include <distdoctor/facts.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace distdoctor::bisect {

struct Options {
  RunBackend backend = RunBackend::nccl;
  std::vector<RunPlace> places = {};  // of every rank, in order; nodes in the order of the facts
  int max_runs = 32;
  std::vector<Layer> only = {};  // switches of these layers; empty: all. Places are always sought
  std::vector<std::int64_t> sizes = {};  // bytes; empty: the usual ones
};

// Nothing is wrong with what was run.
struct Healthy {
  double bus_gb_per_s = 0;      // 0: not measured
  double allowed_gb_per_s = 0;  // 0: the facts do not say
  std::string limit = {};
  bool operator==(const Healthy&) const = default;
};
// The runs do not tell, and no further one would, or there may be no more.
struct Inconclusive {
  std::string why = {};
  bool out_of_runs = false;
  bool operator==(const Inconclusive&) const = default;
};
using Step = std::variant<Experiment, Isolation, Healthy, Inconclusive>;

// After `cluster.experiments`. An Experiment has its number, switches, sizes and the ranks' places;
// the rest is for whoever runs it.
Step next(const ClusterFacts& cluster, const Options& options);

// What would be run, in order, as far as that is known beforehand: one line each.
std::vector<std::string> tree(const ClusterFacts& cluster, const Options& options);

// A rank on each GPU that a node's facts show, `most_per_node` at most. Nodes without GPUs have as
// many as that, or one.
std::vector<RunPlace> places_of(const ClusterFacts& cluster, std::optional<int> most_per_node);

// "p2p,shm,net", in any case; none where a word is no layer. "net" stands for all between nodes.
std::optional<std::vector<Layer>> parse_layers(std::string_view text);

}  // namespace distdoctor::bisect
