// The asks that one peer still owes an answer to, with what has come of them.
#pragma once

#include <distdoctor/observed.h>
#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "base/error.h"
#include "fleet/events.h"
#include "fleet/frame.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace distdoctor::fleet {

// Thread-safe: asks come from the fleet's thread, answers from the peer's.
class Asks {
 public:
  Asks(std::size_t peer, Events& events) : peer_(peer), events_(events) {}

  // `node` is what is known of the peer already: facts are merged into it.
  void add(std::uint64_t id, const Request& request, Deadline deadline, const NodeFacts& node);
  // An answer, a part of one, or word that there will be none. An Error: it answers nothing that
  // was asked, too often.
  Result<void> take(const Incoming& incoming);
  // The first moment at which one runs out, or `otherwise`.
  Deadline earliest(Deadline otherwise);
  // Ends those whose deadline has passed; `silence` tells how long nothing has come.
  void end_overdue(const std::string& silence);
  void end_all(const Unknown& why);

 private:
  struct Open {
    Deadline deadline;
    Deadline::Clock::time_point begun;
    std::size_t type = 0;                             // index of Request and Answer
    std::set<std::string, std::less<>> missing = {};  // collectors
    NodeFacts node = {};
    bool any = false;  // some part has come
  };
  using Table = std::map<std::uint64_t, Open>;

  void take_part(Open& open, const Incoming& incoming);
  void finish(Table::iterator ask, Observed<Answer> answer);
  void give_up(Table::iterator ask, const Unknown& why);

  std::size_t peer_;
  Events& events_;
  std::mutex mutex_;
  Table open_;
  std::size_t strays_ = 0;
};

}  // namespace distdoctor::fleet
