// Connections whose bytes are taken and forgotten as fast as they come, each by a thread of its
// own.
#pragma once

#include "base/deadline.h"
#include "base/fd.h"

#include <atomic>
#include <cstddef>
#include <list>
#include <thread>

namespace distdoctor::probe {

class Drains {
 public:
  static constexpr std::size_t kMost = 64;  // at once; of more the connection is closed

  Drains() = default;
  ~Drains() { end(); }
  Drains(const Drains&) = delete;
  Drains& operator=(const Drains&) = delete;
  Drains(Drains&&) = delete;
  Drains& operator=(Drains&&) = delete;

  // Until the other end closes, or the deadline.
  void take(Fd connection, Deadline until);
  // All of them now; returns when their threads are gone.
  void end();

 private:
  struct Drain {
    Fd fd;
    std::atomic<bool> over = false;
    std::jthread thread = {};  // last: joined before the rest goes
  };
  std::list<Drain> drains_;
};

}  // namespace distdoctor::probe
