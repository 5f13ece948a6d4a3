#include "machine/child.h"

#include "base/fd.h"
#include "base/text.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace distdoctor::machine {
namespace {

using std::chrono::milliseconds;

// How long a killed child may take to die before it counts as stuck.
constexpr milliseconds kTimeToDie{200};
// How long a wait sleeps where there is no pidfd_open(2) (before 5.3).
constexpr milliseconds kStep{2};

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

std::atomic<bool> no_more = false;

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
  if (child.ours) {
    auto programs = helper_folders();
    for (auto& folder : programs) folder += "/" + name;
    return programs;
  }
  if (name.find('/') != std::string::npos) return {name};
  const char* const path = ::getenv("PATH");
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
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
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

struct Running {
  pid_t pid = 0;
  Fd out;
  Fd err;
  Fd failed;
};

// The three lowest descriptors may be free in the caller: then dup2 would close what it copies.
Fd above_standard(Fd fd) {
  if (!fd.valid() || fd.get() > 2) return fd;
  return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

Result<Running> start(const Child& child) {
  Prepared prepared;
  prepare(child, prepared);
  DD_TRY(auto out, make_pipe());
  DD_TRY(auto err, make_pipe());
  DD_TRY(auto failed, make_pipe());
  const Fd null = above_standard(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  if (!null.valid()) return std::unexpected(errno_error("open", "/dev/null"));
  out.write = above_standard(std::move(out.write));
  err.write = above_standard(std::move(err.write));
  failed.write = above_standard(std::move(failed.write));
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(errno_error("fork for", child.argv.at(0)));
  if (pid == 0) {
    run_in_child(prepared, {null.get(), out.write.get(), err.write.get(), failed.write.get()});
  }
  return Running{pid, std::move(out.read), std::move(err.read), std::move(failed.read)};
}

// --- reading and waiting ----------------------------------------------------------------------

// Takes what one descriptor has; closes it at its end.
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

bool exited(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

// A descriptor that becomes readable when the child has ended; none before Linux 5.3.
Fd watch(pid_t pid) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

struct Streams {
  std::string out;
  std::string err;
  std::string failed;
};

// Until the child has ended and what it wrote is read, or the deadline. A grandchild that holds
// the pipes open does not count.
bool read_until_end(Running& child, std::size_t most, Deadline deadline, Streams& streams) {
  const Fd end = watch(child.pid);
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

// Kills what is left of the session, then reaps; whether the child is gone.
bool bury(pid_t pid, int& status) {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);  // it may not have called setsid yet
  const Fd end = watch(pid);
  const auto deadline = Deadline::after(kTimeToDie);
  while (true) {
    if (::waitpid(pid, &status, WNOHANG) == pid) return true;
    if (deadline.expired()) return false;
    pollfd poll_end{end.get(), POLLIN, 0};
    const auto wait = end.valid() ? deadline : deadline.capped(kStep);
    ::poll(&poll_end, 1, wait.remaining_ms());
  }
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Which children share a fate: a driver that hangs one verb of a helper leaves the others alone.
std::string kind_of(const Child& child) {
  const bool verb = child.ours && child.argv.size() > 1;
  return verb ? child.argv[0] + " " + child.argv[1] : child.argv[0];
}

Error refusal(const std::string& command, int errno_value, std::string reason) {
  return {.attempt = "run " + command, .reason = std::move(reason), .errno_value = errno_value};
}

std::optional<int> exec_errno(const std::string& bytes) {
  int value = 0;
  if (bytes.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

std::vector<std::string> helper_folders() {
  std::array<char, PATH_MAX> path{};
  const auto length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  const std::string_view program(path.data(), static_cast<std::size_t>(length));
  const std::string folder(program.substr(0, program.rfind('/')));
  return {folder + "/libexec/distdoctor", folder + "/../libexec/distdoctor"};
}

void run_no_more_children() {
  no_more = true;
}

Result<ChildOutput> run_child(const Child& child, Deadline deadline) {
  const auto command = join(child.argv, " ");
  if (child.argv.empty()) return failure("run a program", "its name is missing");
  if (no_more) {
    return std::unexpected(refusal(command, EPERM, "programs of a container are not run as root"));
  }
  if (const auto stuck = stuck_children().of(kind_of(child))) {
    const auto why = "an earlier one is stuck as pid " + std::to_string(*stuck);
    return std::unexpected(refusal(command, EBUSY, why));
  }
  DD_TRY(auto running, start(child));
  Streams streams;
  const bool ended = read_until_end(running, child.most_output, deadline, streams);
  int status = 0;
  if (!bury(running.pid, status)) stuck_children().remember(kind_of(child), running.pid);
  if (const auto error = exec_errno(streams.failed)) {
    return std::unexpected(errno_error("run", command, *error));
  }
  if (!ended) return std::unexpected(refusal(command, ETIMEDOUT, "it did not end in time"));
  return ChildOutput{exit_code_of(status), std::move(streams.out), std::move(streams.err)};
}

}  // namespace distdoctor::machine
