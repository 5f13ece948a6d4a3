#include "machine/open_child.h"

#include "base/text.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>  // NOLINT(modernize-deprecated-headers): sigabbrev_np() is not in <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace distdoctor::machine {
Result<std::unique_ptr<OpenChild>> OpenChild::start(Child child) {
  std::unique_ptr<OpenChild> open(new OpenChild(std::move(child)));
  std::promise<Result<Running>> promise;
  auto started = promise.get_future();
  try {
    open->keeper_ = std::thread(&OpenChild::keep, open.get(), std::move(promise));
  } catch (const std::system_error& error) {
    return std::unexpected(refusal(open->child_, EAGAIN, error.what()));
  }
  DD_TRY(open->running_, started.get());
  for (Fd* fd : {&open->running_.out, &open->running_.err, &open->running_.failed}) {
    ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
  return open;
}

OpenChild::~OpenChild() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (keeper_.joinable()) keeper_.join();
}

void OpenChild::keep(std::promise<Result<Running>> started) {
  auto running = spawn(child_, Stdin::ours);
  const pid_t pid = running ? running->pid : 0;
  started.set_value(std::move(running));
  if (pid == 0) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return over_; });
  int status = 0;
  bury(child_, pid, status);
}

// It is left to be reaped by its keeper.
std::string OpenChild::way_it_ended() const {
  siginfo_t how{};
  const auto pid = static_cast<id_t>(running_.pid);
  const auto soon = Deadline::after(
      std::chrono::milliseconds(200));  // its streams close a little before it has ended
  while (::waitid(P_PID, pid, &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid == 0 &&
         !soon.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const bool signalled = how.si_pid != 0 && how.si_code != CLD_EXITED;
  const char* const name = signalled ? ::sigabbrev_np(how.si_status) : nullptr;
  return name == nullptr ? "it ended too early" : std::string("killed by SIG") + name;
}

Error OpenChild::ended() {
  if (running_.failed.valid()) take(running_.failed, failed_, sizeof(int));
  if (const auto error = exec_errno(failed_)) {
    return errno_error("run", join(child_.argv, " "), *error);
  }
  constexpr std::size_t kMostWords = 200;
  const auto words = shortened(printable(trim(err_)), kMostWords);
  const auto way = way_it_ended();
  if (words.empty()) return refusal(child_, EPIPE, way);
  return refusal(child_, EPIPE, way.starts_with("killed") ? way + ": " + words : words);
}

Result<void> OpenChild::write(std::string_view text, Deadline deadline) {
  while (!text.empty()) {
    const auto sent =
        ::send(running_.in.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return {};  // it has ended: what it printed before tells more
    } else if (deadline.expired()) {
      return std::unexpected(refusal(child_, ETIMEDOUT, "it does not read"));
    } else {
      pollfd ready{running_.in.get(), POLLOUT, 0};
      ::poll(&ready, 1, deadline.remaining_ms());
    }
  }
  return {};
}

void OpenChild::read_some(Deadline deadline) {
  std::array<pollfd, 3> polls = {{{running_.out.get(), POLLIN, 0},
                                  {running_.err.get(), POLLIN, 0},
                                  {running_.failed.get(), POLLIN, 0}}};
  ::poll(polls.data(), polls.size(), deadline.remaining_ms());
  if (polls[0].revents != 0) take(running_.out, out_, child_.most_output);
  if (polls[1].revents != 0) take(running_.err, err_, child_.most_output);
  if (polls[2].revents != 0) take(running_.failed, failed_, sizeof(int));
}

Result<std::string> OpenChild::read_line(Deadline deadline) {
  std::size_t end = 0;
  while ((end = out_.find('\n')) == std::string::npos) {
    if (!running_.out.valid() && !running_.err.valid()) return std::unexpected(ended());
    if (out_.size() >= child_.most_output) {
      return std::unexpected(refusal(child_, EMSGSIZE, "it says too much"));
    }
    if (deadline.expired()) {
      return std::unexpected(refusal(child_, ETIMEDOUT, "it did not answer in time"));
    }
    read_some(deadline);
  }
  std::string line = out_.substr(0, end);
  out_.erase(0, end + 1);
  return line;
}

Result<std::string> OpenChild::ask(std::string_view line, Deadline deadline) {
  DD_TRY(write(std::string(line) + "\n", deadline));
  return read_line(deadline);
}

}  // namespace distdoctor::machine
