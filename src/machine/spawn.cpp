#include "machine/spawn.h"

#include "base/text.h"
#include "machine/helpers.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace distdoctor::machine {
namespace {

using std::chrono::milliseconds;

// How long a killed child may take to die before it counts as stuck.
constexpr milliseconds kTimeToDie{200};

std::atomic<bool> no_more = false;

// --- children that were killed and did not die ------------------------------------------------

struct StuckChild {
  pid_t pid = 0;
  std::string start;  // field 22 of /proc/PID/stat: the pid may be another's by now
};

std::string start_time(pid_t pid) {
  const auto path = "/proc/" + std::to_string(pid) + "/stat";
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};
  const auto length = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (length <= 0) return "";
  const std::string_view all(text.data(), static_cast<std::size_t>(length));
  const auto words = split_words(all.substr(std::min(all.rfind(')'), all.size())));
  return words.size() > 20 ? std::string(words[20]) : "";
}

class StuckChildren {
 public:
  void remember(const std::string& kind, pid_t pid) {
    const std::scoped_lock lock(mutex_);
    stuck_[kind] = {.pid = pid, .start = start_time(pid)};
  }
  // The one of this kind that is still not dead.
  std::optional<pid_t> of(const std::string& kind) {
    const std::scoped_lock lock(mutex_);
    const auto found = stuck_.find(kind);
    if (found == stuck_.end()) return std::nullopt;
    const auto [pid, start] = found->second;
    const bool dead = ::waitpid(pid, nullptr, WNOHANG) == pid || start_time(pid) != start;
    if (!dead) return pid;
    stuck_.erase(found);
    return std::nullopt;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, StuckChild> stuck_;
};

StuckChildren& stuck_children() {
  static StuckChildren children;
  return children;
}

// Which children share a fate: a driver that hangs one verb of a helper leaves the others alone.
std::string kind_of(const Child& child) {
  const bool verb = child.ours && child.argv.size() > 1;
  return verb ? child.argv[0] + " " + child.argv[1] : child.argv[0];
}

Result<void> may_start(const Child& child) {
  if (child.argv.empty()) return failure("run a program", "its name is missing");
  if (no_more) {
    return std::unexpected(refusal(child, EPERM, "programs of a container are not run as root"));
  }
  if (const auto stuck = stuck_children().of(kind_of(child))) {
    const auto why = "an earlier one is stuck as pid " + std::to_string(*stuck);
    return std::unexpected(refusal(child, EBUSY, why));
  }
  return {};
}

// --- starting ---------------------------------------------------------------------------------

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::unexpected(errno_error("make", "a pipe"));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// All that the child needs, made before the fork: after it only async-signal-safe calls may run.
struct Prepared {
  std::vector<std::string> programs;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  pid_t parent = ::getpid();
};

// A prolog of Slurm has no PATH at all.
std::vector<std::string> programs_of(const Child& child) {
  const std::string& name = child.argv.at(0);
  if (child.ours) return helper_programs(name);
  if (name.find('/') != std::string::npos) return {name};
  const char* const path = ::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const std::string folders =
      std::string(path != nullptr ? path : "") + ":/usr/bin:/bin:/usr/sbin:/sbin";
  std::vector<std::string> programs;
  for (const auto folder : split(folders, ':')) {
    if (!folder.empty()) programs.push_back(std::string(folder) + "/" + name);
  }
  return programs;
}

void point_into(std::vector<std::string>& texts, std::vector<char*>& pointers) {
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
}

void prepare(const Child& child, Prepared& prepared) {
  prepared.programs = programs_of(child);
  prepared.arguments = child.argv;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("LC_ALL=")) {
      prepared.environment.emplace_back(*variable);
    }
  }
  prepared.environment.emplace_back("LC_ALL=C");
  point_into(prepared.arguments, prepared.argv);
  point_into(prepared.environment, prepared.envp);
}

struct ChildEnds {
  int in;
  int out;
  int err;
  int failed;  // takes the errno of execve; closed by a good one
};

void become_clean(pid_t parent) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t now = ::getppid();  // 0 from inside a pid namespace that the parent is not in
  if (now != parent && now != 0) ::_exit(127);  // it died before the line above
  struct sigaction fresh{};
  fresh.sa_handler = SIG_DFL;
  for (int number = 1; number < 32; ++number) ::sigaction(number, &fresh, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);  // NOLINT(concurrency-mt-unsafe): one thread
}

[[noreturn]] void run_in_child(const Prepared& prepared, const ChildEnds& ends) {
  become_clean(prepared.parent);
  ::dup2(ends.in, 0);
  ::dup2(ends.out, 1);
  ::dup2(ends.err, 2);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // what others forgot to mark; none before 5.11
  int error = ENOENT;
  for (const auto& program : prepared.programs) {
    ::execve(program.c_str(), prepared.argv.data(), prepared.envp.data());
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
  }
  static_cast<void>(!::write(ends.failed, &error, sizeof error));
  ::_exit(127);
}

// The three lowest descriptors may be free in the caller: then dup2 would close what it copies.
Fd above_standard(Fd fd) {
  if (!fd.valid() || fd.get() > 2) return fd;
  return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

Result<Pipe> make_stdin(Stdin kind) {
  if (kind == Stdin::null) {
    Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null.valid()) return std::unexpected(errno_error("open", "/dev/null"));
    return Pipe{.read = std::move(null), .write = Fd()};
  }
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return std::unexpected(errno_error("make", "a pair of sockets"));
  }
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

bool kill_and_reap(pid_t pid, int& status) {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);  // it may not have called setsid yet
  const Fd end = watch_end(pid);
  const auto deadline = Deadline::after(kTimeToDie);
  while (true) {
    if (::waitpid(pid, &status, WNOHANG) == pid) return true;
    if (deadline.expired()) return false;
    pollfd poll_end{end.get(), POLLIN, 0};
    const auto wait = end.valid() ? deadline : deadline.capped(kStep);
    ::poll(&poll_end, 1, wait.remaining_ms());
  }
}

}  // namespace

void run_no_more_children() {
  no_more = true;
}

Result<Running> spawn(const Child& child, Stdin kind) {
  DD_TRY(may_start(child));
  Prepared prepared;
  prepare(child, prepared);
  DD_TRY(auto in, make_stdin(kind));
  DD_TRY(auto out, make_pipe());
  DD_TRY(auto err, make_pipe());
  DD_TRY(auto failed, make_pipe());
  in.read = above_standard(std::move(in.read));
  out.write = above_standard(std::move(out.write));
  err.write = above_standard(std::move(err.write));
  failed.write = above_standard(std::move(failed.write));
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(errno_error("fork for", child.argv.at(0)));
  if (pid == 0) {
    run_in_child(prepared, {in.read.get(), out.write.get(), err.write.get(), failed.write.get()});
  }
  return Running{pid, std::move(in.write), std::move(out.read), std::move(err.read),
                 std::move(failed.read)};
}

Fd watch_end(pid_t pid) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

void bury(const Child& child, pid_t pid, int& status) {
  if (!kill_and_reap(pid, status)) stuck_children().remember(kind_of(child), pid);
}

void take(Fd& fd, std::string& text, std::size_t most) {
  std::array<char, 16384> block{};
  const auto got = ::read(fd.get(), block.data(), block.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    fd.reset();
    return;
  }
  const auto room = most - std::min(most, text.size());
  text.append(block.data(), std::min(room, static_cast<std::size_t>(got)));
}

std::optional<int> exec_errno(const std::string& bytes) {
  int value = 0;
  if (bytes.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

Error refusal(const Child& child, int errno_value, std::string reason) {
  return {.attempt = "run " + join(child.argv, " "),
          .reason = std::move(reason),
          .errno_value = errno_value};
}

}  // namespace distdoctor::machine
