#include "machine/child.h"

#include "base/fd.h"
#include "base/text.h"
#include "machine/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace distdoctor::machine {
namespace {

bool exited(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

struct Streams {
  std::string out;
  std::string err;
  std::string failed;
};

// Until the child has ended and what it wrote is read, or the deadline. A grandchild that holds
// the pipes open does not count.
bool read_until_end(Running& child, std::size_t most, Deadline deadline, Streams& streams) {
  const Fd end = watch_end(child.pid);
  for (Fd* fd : {&child.out, &child.err, &child.failed}) ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  while (true) {
    const bool ended = exited(child.pid);
    std::array<pollfd, 4> polls = {{{child.out.get(), POLLIN, 0},
                                    {child.err.get(), POLLIN, 0},
                                    {child.failed.get(), POLLIN, 0},
                                    {ended ? -1 : end.get(), POLLIN, 0}}};
    const auto wait = end.valid() ? deadline : deadline.capped(kStep);
    const int ready = ::poll(polls.data(), polls.size(), ended ? 0 : wait.remaining_ms());
    if (polls[0].revents != 0) take(child.out, streams.out, most);
    if (polls[1].revents != 0) take(child.err, streams.err, most);
    if (polls[2].revents != 0) take(child.failed, streams.failed, sizeof(int));
    if (ended && ready <= 0) return true;
    if (deadline.expired()) return ended;
  }
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Result<ChildOutput> run_child(const Child& child, Deadline deadline) {
  DD_TRY(auto running, spawn(child, Stdin::null));
  Streams streams;
  const bool ended = read_until_end(running, child.most_output, deadline, streams);
  int status = 0;
  bury(child, running.pid, status);
  if (const auto error = exec_errno(streams.failed)) {
    return std::unexpected(errno_error("run", join(child.argv, " "), *error));
  }
  if (!ended) return std::unexpected(refusal(child, ETIMEDOUT, "it did not end in time"));
  return ChildOutput{exit_code_of(status), std::move(streams.out), std::move(streams.err)};
}

}  // namespace distdoctor::machine
