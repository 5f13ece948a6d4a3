// A helper of ours that is talked to while it runs: a line in, a line out.
#pragma once

#include "base/deadline.h"
#include "base/error.h"
#include "machine/child.h"
#include "machine/spawn.h"

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace distdoctor::machine {

// As clean as run_child's: a session of its own, killed when this object or our process goes, and
// never waited for without a bound. One thread at a time.
class OpenChild {
 public:
  // Errors: as run_child's, but for ENOENT and its kind, which the first ask() tells.
  static Result<std::unique_ptr<OpenChild>> start(Child child);
  ~OpenChild();
  OpenChild(const OpenChild&) = delete;
  OpenChild& operator=(const OpenChild&) = delete;
  OpenChild(OpenChild&&) = delete;
  OpenChild& operator=(OpenChild&&) = delete;

  // Writes the line and a newline, and reads the next line that it prints; child.most_output bytes
  // at most. Errors: ETIMEDOUT; EPIPE when it has ended, with what it said on its stderr; execve's.
  Result<std::string> ask(std::string_view line, Deadline deadline);
  // The next line that it prints, unasked; errors as those of ask().
  Result<std::string> next_line(Deadline deadline) { return read_line(deadline); }
  [[nodiscard]] pid_t pid() const { return running_.pid; }

 private:
  explicit OpenChild(Child child) : child_(std::move(child)) {}
  void keep(std::promise<Result<Running>> started);
  Result<void> write(std::string_view text, Deadline deadline);
  void read_some(Deadline deadline);
  Result<std::string> read_line(Deadline deadline);
  [[nodiscard]] Error ended();
  [[nodiscard]] std::string way_it_ended() const;

  Child child_;
  Running running_ = {};
  std::string out_ = {};
  std::string err_ = {};
  std::string failed_ = {};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  // The child dies with the thread that made it (prctl(2), PR_SET_PDEATHSIG): so that one waits.
  std::thread keeper_;
};

}  // namespace distdoctor::machine
