// One link a node that could carry the traffic of a job, the best ones first.
#pragma once

#include <distdoctor/facts.h>

#include "rules/recommend/reach.h"

#include <optional>
#include <string>
#include <vector>

namespace distdoctor::rules {

struct Candidate {
  std::vector<std::string> interfaces = {};  // as a library names them, one a seen node
  std::string network = {};                  // "10.0.0.0/24" that is common to all; or empty
  int plainness = 0;                         // 0 a NIC, 1 a bridge, 2 a tunnel or the like
  int speed_mbps = 0;                        // of the slowest; 0 where any is unknown
  bool masters = false;                      // the master's address is on it
};

// Link by link what all nodes have in common, a subnet or at least a name. Best first: NICs before
// tunnels, then the fastest, then the master's, then the kernel's order on the first node.
std::vector<Candidate> find_candidates(const std::vector<SeenNode>& seen,
                                       const Reachability& reachability,
                                       const std::optional<Master>& master);

// What the links that carry these addresses have together, in Mb/s, on the slowest node: the
// libraries stripe over them. 0 where any speed is unknown.
int carried_mbps(const std::vector<SeenNode>& seen, const Choices& choices);

}  // namespace distdoctor::rules
