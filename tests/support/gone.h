// Whether a process has ended, given some time for it.
#pragma once

#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>

#include <chrono>
#include <thread>

namespace distdoctor::testing {

inline bool gone(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    if (::kill(pid, 0) != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace distdoctor::testing
