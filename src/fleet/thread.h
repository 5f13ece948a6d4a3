// A thread with a small stack, joined when it goes: std::jthread cannot choose its stack, and a
// thousand peers would reserve 8 GB of address space, which batch systems limit.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>

namespace distdoctor::fleet {

inline constexpr std::size_t kPeerStack = std::size_t{512} << 10;
inline constexpr std::size_t kCollectorStack = std::size_t{2} << 20;

class Thread {
 public:
  Thread() = default;
  // Once. Throws std::system_error when the system has no thread left.
  void begin(std::size_t stack, std::function<void()> body);
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  Thread(Thread&&) = delete;
  Thread& operator=(Thread&&) = delete;
  ~Thread() { join(); }
  void join();
  // It may hang, and nobody waits for it.
  void detach();

 private:
  pthread_t thread_ = {};
  bool running_ = false;
};

}  // namespace distdoctor::fleet
