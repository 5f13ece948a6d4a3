// Runs a program that may hang: its own process session, /dev/null and pipes for descriptors, a
// deadline, and no wait without a bound.
#pragma once

#include "base/deadline.h"
#include "base/error.h"
#include "machine/captured.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::machine {

struct Child {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH, then in the usual folders
  bool ours = false;              // argv[0] is a helper of ours: helper_programs() and nothing else
  std::size_t most_output = std::size_t{1} << 20;  // bytes of each stream; the rest is dropped
};

// From now on run_child refuses with EPERM: the programs that PATH leads to are no longer ours to
// trust with what we may do.
void run_no_more_children();

// Thread-safe. It inherits our environment, with LC_ALL=C. When it has ended, what is left of its
// session is killed too. Errors: ENOENT and its kind from execve; ETIMEDOUT when the deadline
// passed; EBUSY while an earlier child of the same argv[0] (of a helper of ours: of the same
// argv[0] and argv[1]) is stuck: killed, and not dead since.
Result<ChildOutput> run_child(const Child& child, Deadline deadline);

}  // namespace distdoctor::machine
