// Which test traffic to send, as a value: pure, bounded, printable (--dry-run).
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/plan.h>

#include <cstdint>
#include <string>
#include <vector>

namespace distdoctor::probe {

struct PlannedListen {
  std::string host;
  ListenRequest request;
};
// A dial whose port is known only once the listener has answered: `listen` is the set's id and
// `index` counts its ports; empty `listen`: the port of `target` as it stands.
struct PlannedDial {
  std::string from;
  std::string to;  // empty: no peer has the address
  DialTarget target;
  std::string listen = {};
};
struct PlannedPath {
  std::string from;
  std::string to;
  PathTarget target;
  std::string listen = {};
};
struct PlannedDuplicates {
  std::string host;
  DuplicateRequest request;
};

struct ProbePlan {
  std::vector<PlannedListen> listens = {};
  std::vector<PlannedDial> dials = {};  // with a `listen`: one for every port of that set
  std::vector<PlannedPath> paths = {};
  std::vector<PlannedDuplicates> duplicates = {};
  std::vector<Gap> left_out = {};  // what was not planned, and why (bounded plan, no address, ...)
};

struct PlanLimits {
  int all_pairs_up_to = 32;  // above: each node with a few others, so that cost is linear
  int ports_per_address = 8;
  int loss_packets = 1000;
  int dial_timeout_ms = 3000;  // one SYN retransmission (1 s, RFC 6298) and a half
};

// `nonce_seed` is drawn by the caller, so that the plan is a function of its arguments.
ProbePlan make_plan(const ClusterFacts& cluster,
                    const PlanLimits& limits,
                    std::uint64_t nonce_seed);

}  // namespace distdoctor::probe
