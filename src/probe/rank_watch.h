// Which ranks run here, and what they have in /dev/shm, so that a rank that crashes and an agent
// that ends leave nothing behind.
#pragma once

#include "base/deadline.h"
#include "base/fd.h"
#include "probe/shared_segments.h"

#include <sys/types.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace distdoctor::probe {

// Thread-safe. A dead rank cannot be asked what it had, so that a thread notes each segment when it
// is made (inotify(7)); without inotify only ranks that still live are known.
class RankWatch {
 public:
  explicit RankWatch(std::string folder = "/dev/shm") : folder_(std::move(folder)) {}
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;
  RankWatch(RankWatch&&) = delete;
  RankWatch& operator=(RankWatch&&) = delete;

  // A rank that has begun; it must not be reaped before take(). False: all of them are ended.
  bool add(pid_t pid);
  // Forgets it, and tells what it has or had, as far as that has a name still.
  SharedSegments take(pid_t pid);
  // What a rank has been seen to have so far.
  SharedSegments noted(pid_t pid);
  // Kills all of them and removes what they had; `add` refuses from then on.
  void end_all(Deadline deadline);

 private:
  void begin();
  void look_on(const Fd& events);
  void note();

  std::string folder_;
  std::mutex mutex_;
  std::map<pid_t, SharedSegments> ranks_;
  bool over_ = false;
  bool noting_ = false;  // what it has read is not among `ranks_` yet
  std::condition_variable noted_ = {};
  Fd stop_ = {};  // an eventfd; readable when the thread is to end
  std::thread looking_;
};

}  // namespace distdoctor::probe
