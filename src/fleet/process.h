// A launcher or a local agent: a child in a session of its own with pipes for its descriptors.
#pragma once

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::fleet {

class Process {
 public:
  // Our ends of the child's stdin, stdout and stderr.
  struct Ends {
    Fd in;   // what it writes
    Fd out;  // what it reads
    Fd words;
  };
  enum class Wire : std::uint8_t { pipes, socket };

  // argv[0] is looked up in PATH. All other descriptors stay behind. With Wire::socket its stdin
  // and stdout are one socketpair; shells take a socket for rshd, so launchers get pipes.
  static Result<std::pair<Process, Ends>> start(const std::vector<std::string>& argv, Wire wire);

  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), status_(std::exchange(other.status_, {})) {}
  Process& operator=(Process&&) = delete;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // Waits for its end, and ends with it what is left of its process group (a ProxyCommand); false
  // when the deadline passed first.
  bool wait(Deadline deadline);
  // SIGKILL to the group, then reaps the child if it dies soon: one in state D does not, and is
  // left behind.
  void kill();
  // "ended with status 255", "was killed by signal 9"; empty while it runs.
  [[nodiscard]] std::string fate() const;

 private:
  explicit Process(pid_t pid) : pid_(pid) {}
  bool reap();

  pid_t pid_ = 0;
  std::optional<int> status_ = {};
};

}  // namespace distdoctor::fleet
