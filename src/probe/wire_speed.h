// What plain TCP carries over a path, while nothing else of ours is under way there.
#pragma once

#include <distdoctor/facts/pairs.h>
#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "base/error.h"

#include <chrono>

namespace distdoctor::probe {

// Of one measurement: NCCL opens no more to a peer (NCCL 2.28 net_socket.cc, MAX_SOCKETS).
inline constexpr int kMostStreams = 64;

// `streams` connections to the bulk sink together. The first part of `time` is not counted: TCP's
// windows grow then. What is counted is what the other kernel acknowledged.
Result<WireSpeed> wire_speed(const PathTarget& target,
                             int streams,
                             std::chrono::milliseconds time,
                             double rtt_ms,
                             Deadline deadline);

// For each number of streams of the target; those before the first that failed.
Observed<std::vector<WireSpeed>> wire_speeds(const PathTarget& target,
                                             double rtt_ms,
                                             Deadline deadline);

}  // namespace distdoctor::probe
