// How children begin and end, for child.cpp and open_child.cpp.
#pragma once

#include "base/error.h"
#include "base/fd.h"
#include "machine/child.h"

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace distdoctor::machine {

// How long a wait sleeps where there is no pidfd_open(2) (before 5.3).
inline constexpr std::chrono::milliseconds kStep{2};

struct Running {
  pid_t pid = 0;
  Fd in = {};  // our end of its stdin, a socket: no SIGPIPE
  Fd out = {};
  Fd err = {};
  Fd failed = {};  // the errno of execve comes here; a good one closes it
};

enum class Stdin : std::uint8_t { null, ours };

// In a session of its own, killed with the thread that calls this. Errors: EPERM after
// run_no_more_children; EBUSY while an earlier child of its kind is stuck; those of fork and pipes.
Result<Running> spawn(const Child& child, Stdin kind);

// A descriptor that becomes readable when the child has ended; none before Linux 5.3.
Fd watch_end(pid_t pid);

// Kills what is left of the session, then reaps; one that does not die is remembered as stuck.
void bury(const Child& child, pid_t pid, int& status);

// Takes what one descriptor has, `most` bytes in all; closes it at its end.
void take(Fd& fd, std::string& text, std::size_t most);

std::optional<int> exec_errno(const std::string& bytes);

Error refusal(const Child& child, int errno_value, std::string reason);

}  // namespace distdoctor::machine
