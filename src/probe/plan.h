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
// A dial whose port is known only once the listener has answered: `listen` is the set's id, and
// each port of that set is dialled; empty `listen`: the port of `target` as it stands.
struct PlannedDial {
  std::string from;
  std::string to;  // empty: no peer has the address
  DialTarget target;
  std::string listen = {};
  std::vector<Purpose> also = {};  // other purposes that announce this address: dialled once
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

// One RC connection from a port of `sender` to one of `receiver`, and messages through it.
struct PlannedRdma {
  std::string from;
  std::string to;
  RdmaRequest sender;
  RdmaRequest receiver;
  bool roce = false;
};

// Acted out in this order: open all sets, dial, measure paths, ask for the reports.
struct Round {
  std::vector<PlannedListen> listens = {};
  std::vector<PlannedDial> dials = {};
  std::vector<PlannedPath> paths = {};
  int dial_timeout_ms = 0;
  int path_timeout_ms = 0;
};

struct ProbePlan {
  // MASTER_PORT comes first and alone: its listener may live for two seconds only, and a reset
  // says "a filter" only if the listener was still there when the last dial had ended.
  std::vector<Round> rounds = {};
  std::vector<PlannedDuplicates> duplicates = {};
  std::vector<PlannedRdma> rdma = {};  // after the rounds; all at once
  std::vector<Untried> left_out = {};  // what was not planned, and why
};

struct PlanLimits {
  int all_pairs_up_to = 32;  // above: each node with a few others, so that cost is linear
  int ports_per_address = 8;
  int loss_packets = 1000;
  int dial_timeout_ms = 1300;  // one SYN retransmission (after 1 s, RFC 6298) and its round trip
  int path_timeout_ms = 6000;  // all paths of a node
  // Each end is a process on its node. 16: two neighbours of a node with eight ports.
  int rdma_ends_per_node = 16;
  int rdma_timeout_ms = 10'000;  // a port's retries may take four times 1.9 s (queue_pair.cpp)
};

// `nonce_seed` is drawn by the caller, so that the plan is a function of its arguments.
ProbePlan make_plan(const ClusterFacts& cluster,
                    const PlanLimits& limits,
                    std::uint64_t nonce_seed);

}  // namespace distdoctor::probe
