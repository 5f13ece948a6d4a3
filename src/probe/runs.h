// The ranks of tiny all-reduces that an agent runs.
#pragma once

#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "base/error.h"
#include "probe/rank_watch.h"

#include <memory>
#include <string>
#include <vector>

namespace distdoctor::probe {

// Thread-safe. The destructor ends all ranks that wait. Errors: too many at once, or nobody waits
// under that id; a rank that cannot be started, dies or hangs is an answer.
class Runs {
 public:
  Runs();
  ~Runs();
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
  Runs(Runs&&) = delete;
  Runs& operator=(Runs&&) = delete;
  Result<RunAnswer> act(const RunRequest& request, Deadline deadline);
  // Kills all ranks, those that are being talked to as well, and removes what they have in
  // /dev/shm; none is started any more. Waits for no rank longer than that.
  void end_all(Deadline deadline);

 private:
  class Rank;
  using RankList = std::vector<std::unique_ptr<Rank>>;
  Result<RankList> made(const RunRequest& request);
  Result<RankList> take_waiting(const std::string& id);
  struct State;
  std::shared_ptr<RankWatch> watch_;
  std::unique_ptr<State> state_;
};

}  // namespace distdoctor::probe
