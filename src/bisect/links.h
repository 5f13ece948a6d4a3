// What the links between the ranks allow, by the facts.
#pragma once

#include "bisect/shape.h"

#include <optional>
#include <string>

namespace distdoctor::bisect {

struct LinkLimit {
  double gb_per_s = 0;     // bus bandwidth that such links usually reach, 10^9 bytes
  std::string limit = {};  // "4 NICs of 400 Gb/s on node1"
  bool between_nodes = false;
};

// The narrowest of the ways that a ring over all ranks takes; none where one of them is not known.
// `run` tells which transports were in use.
std::optional<LinkLimit> limit_of(const ClusterFacts& cluster,
                                  const Shape& shape,
                                  const Experiment& run);

// GB/s in one direction; none for a generation that we do not know.
std::optional<double> pcie_gb_per_s(std::optional<int> width, std::optional<double> gts);

}  // namespace distdoctor::bisect
