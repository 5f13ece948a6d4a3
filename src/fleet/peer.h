// One peer: its launcher, its channel and the thread that serves both.
#pragma once

#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "base/error.h"
#include "fleet/asks.h"
#include "fleet/channel.h"
#include "fleet/events.h"
#include "fleet/fleet.h"
#include "fleet/process.h"
#include "fleet/thread.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor::fleet {

class Peer {
 public:
  // `hosts`: of all peers. They and the options must outlive it.
  Peer(std::size_t index,
       const std::vector<std::string>& hosts,
       const LaunchOptions& options,
       Events& events);

  // Begins; Met or Lost follows soon after `hello_by` at the latest.
  void start(Deadline hello_by);
  // After Met. Done follows soon after the deadline at the latest.
  void ask(std::uint64_t id, const Request& request, Deadline deadline, const NodeFacts& node);
  // All asks are done now, with what has come.
  void end_asks(const Unknown& why);
  // Its hello did not come in time: Lost follows at once, with the launcher's words.
  void give_up();
  // Begins to end the agent; join() waits for it, for less than a second.
  void close();
  void join() { thread_.join(); }

 private:
  void run(Deadline hello_by);
  Result<void> live(Deadline hello_by);
  Result<void> launch(Deadline hello_by);
  Result<AgentHello> shake_hands(Deadline hello_by);
  Result<void> greet(Deadline hello_by);
  Result<void> serve();
  void compare_clocks(Deadline hello_by);
  void end_launcher();
  std::string explain(const Error& error);

  std::size_t index_;
  const std::vector<std::string>& hosts_;
  const LaunchOptions& options_;
  Events& events_;
  PeerState state_;
  std::string launcher_;  // argv[0]
  std::optional<Process> process_;
  std::unique_ptr<Channel> channel_;  // set and reset under mutex_, by the peer's thread
  std::mutex mutex_;
  std::atomic<bool> closing_ = false;
  std::atomic<bool> late_ = false;
  Asks asks_;
  Thread thread_;  // last: it uses all the others
};

}  // namespace distdoctor::fleet
