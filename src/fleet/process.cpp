#include "fleet/process.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

namespace distdoctor::fleet {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeToDie{200};
constexpr milliseconds kStep{2};

struct Both {
  Fd ours;
  Fd theirs;
};

// Above the three that the child's ends are copied onto: they may be free in us.
Fd high(int number) {
  Fd fd(number);
  if (number > 2) return fd;
  return Fd(::fcntl(number, F_DUPFD_CLOEXEC, 3));
}

Result<Both> make_pipe(bool we_read) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::unexpected(errno_error("make", "a pipe"));
  Fd read = high(ends[0]);
  Fd write = high(ends[1]);
  if (we_read) return Both{std::move(read), std::move(write)};
  return Both{std::move(write), std::move(read)};
}

// Their stdin and stdout, and our ends of them.
struct Wires {
  Both in;
  Both out;
  Both words;
};

Result<Wires> make_wires(Process::Wire wire) {
  Wires wires;
  DD_TRY(wires.words, make_pipe(true));
  if (wire == Process::Wire::pipes) {
    DD_TRY(wires.in, make_pipe(false));
    DD_TRY(wires.out, make_pipe(true));
    return wires;
  }
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return std::unexpected(errno_error("make", "a socketpair"));
  }
  wires.in = {high(ends[0]), high(ends[1])};
  wires.out = {Fd(::fcntl(wires.in.ours.get(), F_DUPFD_CLOEXEC, 3)),
               Fd(::fcntl(wires.in.theirs.get(), F_DUPFD_CLOEXEC, 3))};
  return wires;
}

// posix_spawn: no fork of a coordinator with a thousand threads, and an exec that fails is said.
int spawn(const std::vector<std::string>& argv, const Wires& wires, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, wires.in.theirs.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, wires.out.theirs.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, wires.words.theirs.get(), 2);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  constexpr int kFlags = POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(kFlags));
  std::vector<std::string> words = argv;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int error =
      ::posix_spawnp(&pid, pointers[0], &actions, &attributes, pointers.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

Result<std::pair<Process, Process::Ends>> Process::start(const std::vector<std::string>& argv,
                                                         Wire wire) {
  DD_TRY(Wires wires, make_wires(wire));
  pid_t pid = 0;
  const int error = spawn(argv, wires, pid);
  if (error != 0) return std::unexpected(errno_error("start", argv.at(0), error));
  return std::pair{Process(pid), Ends{.in = std::move(wires.out.ours),
                                      .out = std::move(wires.in.ours),
                                      .words = std::move(wires.words.ours)}};
}

Process::~Process() {
  if (pid_ != 0 && !status_) kill();
}

// What is left of its group is killed while its pid still cannot be anybody else's.
bool Process::reap() {
  if (status_) return true;
  siginfo_t info{};
  const auto pid = static_cast<id_t>(pid_);
  if (::waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return false;
  }
  ::kill(-pid_, SIGKILL);
  int status = 0;
  if (::waitpid(pid_, &status, 0) == pid_) status_ = status;
  return status_.has_value();
}

bool Process::wait(Deadline deadline) {
  while (!reap()) {
    if (deadline.expired()) return false;
    ::poll(nullptr, 0, static_cast<int>(kStep.count()));
  }
  return true;
}

void Process::kill() {
  if (status_) return;
  ::kill(-pid_, SIGKILL);
  wait(Deadline::after(kTimeToDie));
}

std::string Process::fate() const {
  if (!status_) return "";
  if (WIFSIGNALED(*status_)) return fmt::format("was killed by signal {}", WTERMSIG(*status_));
  return fmt::format("ended with status {}", WEXITSTATUS(*status_));
}

}  // namespace distdoctor::fleet
