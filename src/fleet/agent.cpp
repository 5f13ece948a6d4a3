#include "fleet/agent.h"

#include "base/fd.h"
#include "base/text.h"
#include "codec/codec.h"
#include "codec/read.h"
#include "codec/write.h"
#include "collect/identity.h"
#include "fleet/channel.h"
#include "fleet/collecting.h"
#include "fleet/fleet.h"
#include "fleet/greeting.h"
#include "fleet/job_process.h"
#include "fleet/namespaces.h"
#include "fleet/thread.h"
#include "machine/helpers.h"
#include "machine/limits.h"
#include "machine/machine.h"
#include "machine/orphans.h"
#include "probe/probe.h"
#include "probe/runs.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): beside its siblings
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace distdoctor::fleet {
namespace {

using std::chrono::milliseconds;

// No run of ours is longer; the kernel keeps it even when this program does not.
constexpr unsigned kLifetime_s = 3600;
constexpr std::size_t kMostThreads = 64;
constexpr milliseconds kTimeToEndRanks{300};  // less than a coordinator gives us to go, with this
constexpr milliseconds kTimeToEndChildren{200};
constexpr int kSignalled = 128;  // as a shell says it

sigset_t ending_signals() {
  sigset_t ends;
  ::sigemptyset(&ends);
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGALRM}) ::sigaddset(&ends, number);
  return ends;
}

// The channel is ours alone: what anything here prints must not end up between two frames.
std::pair<Fd, Fd> take_standard(int in_fd, int out_fd) {
  Fd in(::fcntl(in_fd, F_DUPFD_CLOEXEC, 3));
  Fd out(::fcntl(out_fd, F_DUPFD_CLOEXEC, 3));
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (in_fd == 0) ::dup2(null.get(), 0);
  if (out_fd == 1) ::dup2(null.get(), 1);
  return {std::move(in), std::move(out)};
}

std::string random_hex(std::size_t digits) {
  std::string bytes(digits / 2, '\0');
  static_cast<void>(!::getrandom(bytes.data(), bytes.size(), 0));
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

Context login_context() {
  const auto machine = machine::Machine::live();
  return machine ? collect::context_of(**machine) : Context::unknown;
}

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

// A pushed program is nobody's any more once it runs (launch.cpp). Its helpers came behind it.
void unlink_if_pushed() {
  const char* const pushed = ::getenv("DISTDOCTOR_PUSHED");  // NOLINT(concurrency-mt-unsafe)
  if (pushed == nullptr) return;
  machine::trust_only_helpers_behind_us();
  std::array<char, 4096> path{};
  if (::readlink("/proc/self/exe", path.data(), path.size() - 1) <= 0) return;
  if (std::string_view(path.data()).find("/distdoctor.") != std::string_view::npos) {
    ::unlink(path.data());
  }
  ::unsetenv("DISTDOCTOR_PUSHED");  // NOLINT(concurrency-mt-unsafe)
}

class Agent {
 public:
  Agent(Fd in, Fd out, std::span<const collect::Collector> collectors)
      : channel_(Side::agent, std::move(in), std::move(out)), collectors_(collectors) {}

  // Until the channel ends.
  void serve() {
    if (!meet()) return;
    listeners_.emplace();
    while (true) {
      const auto incoming = channel_.next(earliest());
      if (!incoming) return;
      end_overdue();
      if (*incoming) answer(**incoming);
    }
  }

  void end_ranks();

 private:
  Result<void> meet();
  void end_by_signals();
  void enter(int pid, AgentHello& hello);
  [[nodiscard]] Deadline earliest() const;
  void end_overdue();
  void answer(const Incoming& incoming);
  void collect(std::uint64_t id, const CollectRequest& request, Deadline deadline);
  void in_a_thread(std::uint64_t id, const Request& request, Deadline deadline);
  void work(std::uint64_t id, const Request& request, Deadline deadline);
  Result<Answer> act(const Request& request, Deadline deadline);
  void trouble(std::uint64_t id, const std::string& text);

  Channel channel_;
  std::span<const collect::Collector> collectors_;
  std::optional<probe::Listeners> listeners_;  // it has a thread, so not before meet() is over
  probe::Runs runs_;
  probe::QueuePairs queue_pairs_;
  std::vector<std::shared_ptr<Collecting>> collecting_;
  std::atomic<std::size_t> threads_ = 0;
  bool entered_ = false;
};

Result<void> Agent::meet() {
  const std::string nonce = random_hex(kNonceDigits);
  channel_.stream().post(greeting(nonce));
  DD_TRY(const std::optional<Incoming> incoming, channel_.next(Deadline::after(kSilence)));
  constexpr std::string_view kAttempt = "read the coordinator's hello";
  if (!incoming || incoming->type != "hello") return failure(kAttempt, "it said none");
  CoordinatorHello theirs;
  DD_TRY(codec::read_value(incoming->body, theirs, kAttempt));
  if (theirs.nonce != nonce) return failure(kAttempt, "it is not for this agent");
  AgentHello hello{.version = DISTDOCTOR_VERSION};
  if (theirs.enter_job) theirs.enter_pid = find_job_process();
  if (theirs.enter_pid) enter(*theirs.enter_pid, hello);
  hello.boot_id = boot_id();
  hello.net_namespace = net_namespace();
  hello.context = entered_ ? Context::pid : login_context();
  channel_.post({.type = "hello", .body = codec::write_json(hello)});
  channel_.allow_large_frames();
  machine::adopt_orphans();
  end_by_signals();
  channel_.begin_beats();
  return {};
}

// Still single-threaded, as setns(2) wants it. In the child of a fork life goes on; its parent only
// waits, so that whoever started it sees one process from begin to end.
void Agent::enter(int pid, AgentHello& hello) {
  machine::keep_limits_of(pid);
  const auto fork_needed = enter_namespaces_of(pid);
  if (!fork_needed) {
    hello.error = fork_needed.error().render();
    return;
  }
  entered_ = true;
  if (!*fork_needed) return;
  const pid_t child = ::fork();
  if (child < 0) {
    hello.error = errno_error("fork into", "the PID namespace").render();
  } else if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // so that it can end its ranks
    ::alarm(kLifetime_s);                // not inherited
  } else {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
    ::_exit(0);
  }
}

// Ranks in the middle of an all-reduce would leave segments behind. A rank that hangs in the kernel
// may hold up whoever looks at it.
void Agent::end_ranks() {
  auto ended = std::make_shared<std::promise<void>>();
  Thread ending;
  ending.begin(kCollectorStack, [this, ended] {
    runs_.end_all(Deadline::after(kTimeToEndRanks));
    ended->set_value();
  });
  ending.detach();
  ended->get_future().wait_for(kTimeToEndRanks + milliseconds(50));
}

// Whoever ends us asks first: a launcher that goes, a batch system, our own alarm. The last moment
// at which no other thread can be given such a signal.
void Agent::end_by_signals() {
  const sigset_t blocked = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  Thread waiting;
  waiting.begin(kCollectorStack, [this] {
    const sigset_t ends = ending_signals();
    int number = 0;
    while (::sigwait(&ends, &number) != 0) continue;
    end_ranks();
    machine::end_children(Deadline::after(kTimeToEndChildren));
    ::_exit(kSignalled + number);
  });
  waiting.detach();
}

Deadline Agent::earliest() const {
  Deadline first = Deadline::after(kSilence);
  for (const auto& one : collecting_) {
    if (!one->over()) first = std::min(first, one->deadline());
  }
  return first;
}

void Agent::end_overdue() {
  for (const auto& one : collecting_) {
    if (one->deadline().expired()) one->give_up_missing();
  }
  std::erase_if(collecting_, [](const auto& one) { return one->over(); });
}

void Agent::trouble(std::uint64_t id, const std::string& text) {
  channel_.post({.id = id, .type = "trouble", .body = codec::write_json(Trouble{.text = text})});
}

void Agent::answer(const Incoming& incoming) {
  const auto request = codec::read_request(incoming.document.root());
  if (!request) return trouble(incoming.id, request.error().render());
  // A little less than the coordinator's, so that the answer is there in time.
  constexpr std::int64_t kMost = std::int64_t{kLifetime_s} * 1000;
  const milliseconds left(std::clamp<std::int64_t>(incoming.left_ms.value_or(0), 0, kMost));
  const Deadline deadline = Deadline::after(left - std::min(left / 10, milliseconds(100)));
  try {
    if (const auto* wanted = std::get_if<CollectRequest>(&*request)) {
      collect(incoming.id, *wanted, deadline);
    } else {
      in_a_thread(incoming.id, *request, deadline);
    }
  } catch (const std::exception& error) {
    trouble(incoming.id, error.what());
  }
}

void Agent::collect(std::uint64_t id, const CollectRequest& request, Deadline deadline) {
  auto machine = machine::Machine::live();
  if (!machine) return trouble(id, machine.error().render());
  const auto& one = collecting_.emplace_back(
      std::make_shared<Collecting>(id, request, deadline, *std::move(machine), channel_));
  one->begin(collectors_);
}

void Agent::in_a_thread(std::uint64_t id, const Request& request, Deadline deadline) {
  if (threads_ >= kMostThreads) return trouble(id, "too many requests at once");
  Thread thread;
  ++threads_;
  thread.begin(kCollectorStack, [this, id, request, deadline] {
    work(id, request, deadline);
    --threads_;
  });
  thread.detach();
}

void Agent::work(std::uint64_t id, const Request& request, Deadline deadline) {
  try {
    const auto answer = act(request, deadline);
    if (!answer) return trouble(id, answer.error().render());
    channel_.post(frame_of(id, codec::typed_body(*answer)));
  } catch (const std::exception& error) {
    trouble(id, error.what());
  }
}

struct Act {
  probe::Listeners& listeners;
  probe::Lookups look_up;
  Deadline deadline;

  Answer operator()(const ListenRequest& request) const { return listeners.open(request); }
  Answer operator()(const DialRequest& request) const {
    return probe::dial(request, look_up, deadline);
  }
  Answer operator()(const PathRequest& request) const {
    return probe::measure_paths(request, look_up, deadline);
  }
  Answer operator()(const ReportRequest& request) const { return listeners.report(request); }
  Answer operator()(const DuplicateRequest& request) const {
    return probe::find_duplicates(request, deadline);
  }
  // Not here.
  Answer operator()(const RdmaRequest& /*request*/) const { return RdmaAnswer{}; }
  Answer operator()(const RunRequest& /*request*/) const { return RunAnswer{}; }
  Answer operator()(const CollectRequest& /*request*/) const { return NodeFacts{}; }
};

probe::Lookups lookups_of(const std::shared_ptr<const machine::Machine>& machine) {
  return {.route_to = [machine](const Address& to) { return machine->route_to(to, std::nullopt); },
          .neighbours = [machine] { return machine->neighbours(); }};
}

Result<Answer> Agent::act(const Request& request, Deadline deadline) {
  if (const auto* wanted = std::get_if<RunRequest>(&request)) {
    DD_TRY(auto answer, runs_.act(*wanted, deadline));
    return answer;
  }
  if (const auto* wanted = std::get_if<RdmaRequest>(&request)) {
    DD_TRY(auto answer, queue_pairs_.act(*wanted, deadline));
    return answer;
  }
  DD_TRY(std::shared_ptr<const machine::Machine> machine, machine::Machine::live());
  return std::visit(Act{*listeners_, lookups_of(machine), deadline}, request);
}

}  // namespace

int run_agent(int in_fd, int out_fd, std::span<const collect::Collector> collectors) {
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): it cannot fail
  ::alarm(kLifetime_s);
  unlink_if_pushed();
  auto [in, out] = take_standard(in_fd, out_fd);
  Agent agent(std::move(in), std::move(out), collectors);
  agent.serve();
  agent.end_ranks();
  machine::end_children(Deadline::after(kTimeToEndChildren));
  // Not `return`: threads that hang would be waited for.
  ::_exit(0);
}

int run_agent(int in_fd, int out_fd) {
  return run_agent(in_fd, out_fd, collect::all_collectors());
}

}  // namespace distdoctor::fleet
