#include "fleet/job_process.h"

#include "base/deadline.h"
#include "base/fd.h"
#include "collect/processes.h"
#include "machine/machine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill(2)
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace distdoctor::fleet {
namespace {

constexpr std::chrono::seconds kPatience{3};

int choose() {
  const auto machine = machine::Machine::live();
  if (!machine) return 0;
  std::map<std::string, std::vector<int>> worlds;  // pids by network namespace
  for (const auto& found : collect::find_training(**machine)) {
    const int pid = found.process->pid;
    if (found.role != ProcessRole::worker || found.process->state == "Z") continue;
    const auto network = (*machine)->files().read_link("/proc/" + std::to_string(pid) + "/ns/net");
    if (network) worlds[*network].push_back(pid);
  }
  const std::vector<int>* most = nullptr;
  for (const auto& [network, pids] : worlds) {
    if (most == nullptr || pids.size() > most->size()) most = &pids;
  }
  return most == nullptr ? 0 : most->front();
}

int read_pid(int fd) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  const Deadline deadline = Deadline::after(kPatience);
  int count = 0;
  while ((count = ::poll(&ready, 1, deadline.remaining_ms())) < 0 && errno == EINTR) continue;
  int pid = 0;
  if (count <= 0 || ::read(fd, &pid, sizeof pid) != sizeof pid) return 0;
  return pid;
}

}  // namespace

std::optional<int> find_job_process() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const Fd in(ends[0]);
  Fd out(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    const int pid = choose();
    static_cast<void>(!::write(out.get(), &pid, sizeof pid));
    ::_exit(0);
  }
  out.reset();
  const int pid = read_pid(in.get());
  ::kill(child, SIGKILL);
  // One in state D is left to init: nobody waits for it.
  ::waitpid(child, nullptr, WNOHANG);
  return pid > 0 ? std::optional(pid) : std::nullopt;
}

}  // namespace distdoctor::fleet
