// What the peers' threads tell the one thread that owns the fleet's state. The queue is bounded by
// what was asked for: one event for each ask, and two for each peer.
#pragma once

#include <distdoctor/observed.h>
#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "fleet/fleet.h"
#include "fleet/messages.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace distdoctor::fleet {

// A peer's agent has said hello.
struct Met {
  PeerState state;
  AgentHello hello;
};
// An ask has its answer.
struct Done {
  std::uint64_t id = 0;
  Observed<Answer> answer = {};
};
// A peer is gone, or was never there.
struct Lost {
  PeerState state;
};
// Somebody wants ask() to return.
struct Interrupted {};

struct Event {
  std::size_t peer = 0;
  std::variant<Met, Done, Lost, Interrupted> what;
};

class Events {
 public:
  void push(Event event) {
    {
      const std::scoped_lock lock(mutex_);
      events_.push_back(std::move(event));
    }
    ready_.notify_one();
  }
  // Nothing when the deadline passed.
  std::optional<Event> pop(Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!ready_.wait_until(lock, deadline.moment(), [&] { return !events_.empty(); })) {
      return std::nullopt;
    }
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Event> events_;
};

}  // namespace distdoctor::fleet
