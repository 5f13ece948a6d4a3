// Bytes both ways over any pair of descriptors, and what the launcher says on its stderr. One
// thread owns it and pumps; any thread may post. Nothing here waits beyond its deadline.
#pragma once

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace distdoctor::fleet {

class Stream {
 public:
  // Takes the descriptors and makes them non-blocking. `words` may be none. SIGPIPE must be
  // ignored, as Fleet::open and run_agent see to.
  Stream(Fd in, Fd out, Fd words = Fd());

  // Any thread. The stream ends when the other side leaves more than 256 MiB untaken (--push sends
  // the whole program).
  void post(std::string_view bytes);
  // Any thread: pump() returns, now and from now on.
  void stop();
  // Any thread: pump() returns once.
  void nudge();
  [[nodiscard]] bool take_nudge() { return nudged_.exchange(false); }

  // Waits until something came, the stream was stopped, or the deadline passed. With `read` false
  // nothing more is read from `in`.
  void pump(Deadline deadline, bool read = true);

  // What came since the last call. Owner only, like all below.
  [[nodiscard]] std::string take() { return std::exchange(received_, {}); }
  // Empty while bytes may still come; else why none will.
  [[nodiscard]] const std::string& ended() const { return ended_; }
  [[nodiscard]] bool stopped() const { return stopped_; }
  // The last kMaxWords bytes of the launcher's stderr.
  [[nodiscard]] const std::string& words() const { return words_; }
  // Reads the words that have come already.
  void drain_words();
  // End of file for the other side.
  void finish();

 private:
  void read_in();
  void write_out();
  bool posted_something();

  Fd in_;
  Fd out_;
  Fd words_fd_;
  Fd wake_;  // eventfd
  std::string received_;
  std::string sending_;
  std::size_t sent_ = 0;  // of sending_
  std::string words_;
  std::size_t words_seen_ = 0;
  std::string ended_;
  std::mutex mutex_;
  std::string posted_;  // guarded by mutex_
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> nudged_ = false;
};

}  // namespace distdoctor::fleet
