// The nodes of a job, each behind an agent process: the local one over a socketpair, the others
// behind a launcher. One thread a peer; nobody waits for a peer beyond its deadline.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/observed.h>
#include <distdoctor/plan.h>

#include "base/deadline.h"

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::fleet {

struct LaunchOptions {
  // Empty: ssh. Else a template whose {host} is replaced in each word: "ip netns exec {host}".
  std::string launch_template = {};
  std::string ssh_command = "ssh";
  bool push = false;                  // copy the program to peers that lack it
  std::string remote_path = {};       // empty: the coordinator's own absolute path, then PATH
  std::optional<int> enter_pid = {};  // the local agent first enters this process's namespaces
  bool enter_job = false;             // each agent enters those of its node's training process
};

// What became of one peer's channel. `local`: the peer is this machine (its name is our hostname,
// or resolves to an address of ours), so no launcher was used.
struct PeerState {
  std::string host;
  bool reached = false;
  bool local = false;
  std::string channel = {};  // "local", "ssh", "launch"
  std::string version = {};  // agent's
  Context context = Context::unknown;
  std::string not_reached = {};  // the launcher's own words, control characters removed
  std::string same_as = {};      // an earlier peer whose name leads to the same network namespace
  Observed<double> clock_offset_ms = {};
  Observed<double> clock_error_ms = {};
};

struct Ask {
  std::string host;
  Request request;
};

class Fleet {
 public:
  // Starts all agents at once and returns when each has said hello, failed, or `deadline` passed;
  // sooner where a few are silent among others that have long said it.
  // An empty list of peers means this machine alone, under its hostname. `interrupted`, where
  // given, is looked at while we wait, here and in ask(): once it is true the rest is as after
  // interrupt(). It must outlive the fleet.
  static std::unique_ptr<Fleet> open(const std::vector<std::string>& peers,
                                     const LaunchOptions& options,
                                     Deadline deadline,
                                     const std::atomic<bool>* interrupted = nullptr);
  virtual ~Fleet() = default;

  [[nodiscard]] virtual std::vector<PeerState> peers() const = 0;
  // Sends all at once; the answers in the order of the asks, Unknown (timed_out, failed) where none
  // came by the deadline or the peer is gone. NodeFacts answers hold what had come by then: the
  // collectors still missing are Unknown inside it.
  virtual std::vector<Observed<Answer>> ask(std::span<const Ask> asks, Deadline deadline) = 0;
  // Makes the running ask() and all later ones return at once with what has come: Ctrl-C. Callable
  // from another thread.
  virtual void interrupt() = 0;
  // Ends the agents: asks, then kills; bounded by a second. The destructor does it too.
  virtual void close() = 0;
};

// The agent's side: `distdoctor agent`, frames on stdin and stdout. Returns the exit code.
int run_agent(int in_fd, int out_fd);

}  // namespace distdoctor::fleet
