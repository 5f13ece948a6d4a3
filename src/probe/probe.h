// The agent's side of the probes: acts out one request. Each call ends by its own deadline.
#pragma once

#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "base/error.h"

#include <functional>
#include <memory>
#include <vector>

namespace distdoctor::probe {

// The listening sets of one agent. Thread-safe. The destructor closes all of them.
class Listeners {
 public:
  Listeners();
  ~Listeners();
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;
  Listeners(Listeners&&) = delete;
  Listeners& operator=(Listeners&&) = delete;
  ListenAnswer open(const ListenRequest& request);  // returns once all are listening
  ReportAnswer report(const ReportRequest& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The RDMA queue pairs of one agent, between the two requests for each. Thread-safe. Errors: the
// helper is not here, died or was too slow; a device that does not work is an answer.
class QueuePairs {
 public:
  QueuePairs();
  ~QueuePairs();
  QueuePairs(const QueuePairs&) = delete;
  QueuePairs& operator=(const QueuePairs&) = delete;
  QueuePairs(QueuePairs&&) = delete;
  QueuePairs& operator=(QueuePairs&&) = delete;
  Result<RdmaAnswer> act(const RdmaRequest& request, Deadline deadline);

 private:
  Result<RdmaAnswer> open(const RdmaRequest& request, Deadline deadline);
  Result<RdmaAnswer> finish(const RdmaRequest& request, Deadline deadline);
  struct State;
  std::unique_ptr<State> state_;
};

// What a node's kernel knows of the way to others (Machine::route_to, Machine::neighbours).
struct Lookups {
  std::function<Result<RouteAnswer>(const Address& destination)> route_to;
  std::function<Result<std::vector<Neighbour>>()> neighbours;
};

DialAnswer dial(const DialRequest& request, const Lookups& look_up, Deadline deadline);
PathAnswer measure_paths(const PathRequest& request, const Lookups& look_up, Deadline deadline);
DuplicateAnswer find_duplicates(const DuplicateRequest& request, Deadline deadline);

}  // namespace distdoctor::probe
