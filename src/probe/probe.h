// The agent's side of the probes: acts out one request. Each call ends by its own deadline.
#pragma once

#include <distdoctor/plan.h>

#include "base/deadline.h"

#include <memory>

namespace distdoctor::probe {

// The listening sets of one agent. Thread-safe. The destructor closes all of them.
class Listeners {
 public:
  Listeners();
  ~Listeners();
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;
  ListenAnswer open(const ListenRequest& request);  // returns once all are listening
  ReportAnswer report(const ReportRequest& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

DialAnswer dial(const DialRequest& request, Deadline deadline);
PathAnswer measure_paths(const PathRequest& request, Deadline deadline);
DuplicateAnswer find_duplicates(const DuplicateRequest& request, Deadline deadline);

}  // namespace distdoctor::probe
