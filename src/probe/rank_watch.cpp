#include "probe/rank_watch.h"

#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

namespace distdoctor::probe {
namespace {

// What a look at all ranks takes, unless one of them hangs.
constexpr std::chrono::milliseconds kNoteTime{200};

// Reaped by somebody else is as good as dead.
bool is_dead(pid_t pid) {
  siginfo_t how{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &how, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return errno == ECHILD;
  }
  return how.si_pid != 0;
}

void add_new(const SharedSegments& more, SharedSegments& all) {
  for (const SharedSegment& segment : more) {
    if (std::ranges::find(all, segment) == all.end()) all.push_back(segment);
  }
}

// Takes all that has come; whether one of NCCL's names is among it.
bool any_of_nccl(const Fd& events) {
  bool any = false;
  std::array<char, 16384> bytes{};
  for (ssize_t got = 0; (got = ::read(events.get(), bytes.data(), bytes.size())) > 0;) {
    const std::string_view all(bytes.data(), static_cast<std::size_t>(got));
    any = any || all.find("nccl-") != std::string_view::npos;
  }
  return any;
}

}  // namespace

RankWatch::~RankWatch() {
  const std::uint64_t one = 1;
  if (stop_.valid()) static_cast<void>(!::write(stop_.get(), &one, sizeof one));
  if (looking_.joinable()) looking_.join();
}

bool RankWatch::add(pid_t pid) {
  const std::scoped_lock lock(mutex_);
  if (over_) return false;
  if (!stop_.valid()) begin();
  ranks_[pid];
  return true;
}

SharedSegments RankWatch::take(pid_t pid) {
  SharedSegments all = nccl_segments_of(pid, folder_);
  std::unique_lock lock(mutex_);
  // Of a dead rank nobody but note() may know.
  noted_.wait_for(lock, kNoteTime, [&] { return !noting_; });
  const auto found = ranks_.extract(pid);
  if (!found.empty()) add_new(found.mapped(), all);
  return all;
}

SharedSegments RankWatch::noted(pid_t pid) {
  const std::scoped_lock lock(mutex_);
  const auto found = ranks_.find(pid);
  return found == ranks_.end() ? SharedSegments{} : found->second;
}

void RankWatch::end_all(Deadline deadline) {
  const std::scoped_lock lock(mutex_);  // held: nobody reaps one of them meanwhile
  over_ = true;
  SharedSegments all;
  for (auto& [pid, segments] : ranks_) {
    add_new(nccl_segments_of(pid, folder_), segments);
    add_new(segments, all);
    ::kill(-pid, SIGKILL);
  }
  for (const auto& [pid, segments] : ranks_) {
    while (!is_dead(pid) && !deadline.expired()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  remove_unused(all);
}

// In the folder of a machine without /dev/shm there is nothing to look at.
void RankWatch::begin() {
  stop_ = Fd(::eventfd(0, EFD_CLOEXEC));
  Fd events(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!stop_.valid() || !events.valid()) return;
  if (::inotify_add_watch(events.get(), folder_.c_str(), IN_CREATE) < 0) return;
  try {
    looking_ = std::thread([this, fd = std::move(events)] { look_on(fd); });
  } catch (const std::system_error&) {
    looking_ = std::thread();  // no more threads here: it goes without
  }
}

void RankWatch::look_on(const Fd& events) {
  while (true) {
    std::array<pollfd, 2> polls = {{{events.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    if (::poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) return;
    if (polls[1].revents != 0) return;
    if (polls[0].revents == 0) continue;
    if (any_of_nccl(events)) note();
  }
}

// Without the lock: /proc may keep us waiting for a rank that hangs, and nobody else should wait
// with us.
void RankWatch::note() {
  std::map<pid_t, SharedSegments> seen;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& rank : ranks_) seen[rank.first];
    noting_ = true;
  }
  for (auto& [pid, segments] : seen) segments = nccl_segments_of(pid, folder_);
  const std::scoped_lock lock(mutex_);
  for (const auto& [pid, segments] : seen) {
    const auto rank = ranks_.find(pid);
    if (rank != ranks_.end()) add_new(segments, rank->second);
  }
  noting_ = false;
  noted_.notify_all();
}

}  // namespace distdoctor::probe
