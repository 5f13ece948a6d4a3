#include "machine/limits.h"
#include "machine/link_rows.h"
#include "machine/machine.h"
#include "machine/qos_rows.h"
#include "machine/route_rows.h"
#include "machine/socket_rows.h"

#include <sys/klog.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <string_view>
#include <utility>

namespace distdoctor::machine {
namespace {

double seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

Environment own_environment() {
  Environment environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view entry = *variable;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

// A dump that changed while it was read is read again, a few times.
template <class Ask>
auto settled(Ask ask) {
  auto result = ask();
  for (int again = 0; again < 3 && !result && result.error().errno_value == EINTR; ++again) {
    result = ask();
  }
  return result;
}

Result<std::string> read_kernel_log() {
  constexpr int kReadAll = 3;  // SYSLOG_ACTION_READ_ALL; leaves the buffer as it is
  constexpr int kSize = 10;    // SYSLOG_ACTION_SIZE_BUFFER
  const int size = ::klogctl(kSize, nullptr, 0);
  if (size < 0) return std::unexpected(errno_error("syslog", "the size of the kernel log"));
  std::string text(static_cast<std::size_t>(size), '\0');
  const int length = ::klogctl(kReadAll, text.data(), size);
  if (length < 0) return std::unexpected(errno_error("syslog", "the kernel log"));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

class LiveMachine : public Machine {
 public:
  explicit LiveMachine(std::unique_ptr<FileTree> files)
      : Machine(std::move(files)), environment_(own_environment()) {}

  [[nodiscard]] const Environment& environment() const override { return environment_; }

  [[nodiscard]] Self self() const override {
    utsname name{};
    ::uname(&name);
    return {.hostname = static_cast<const char*>(name.nodename),
            .release = static_cast<const char*>(name.release),
            .uid = static_cast<int>(::getuid()),
            .now_s = seconds(CLOCK_REALTIME),
            .uptime_s = seconds(CLOCK_BOOTTIME)};
  }

  [[nodiscard]] Result<std::map<std::string, Limit>> limits() const override {
    return read_limits();
  }

  [[nodiscard]] Result<std::vector<Link>> links() const override { return settled(ask_links); }
  [[nodiscard]] Result<std::vector<Route>> routes() const override {
    return settled([] { return ask_routes(kMostRows); });
  }
  [[nodiscard]] Result<std::vector<PolicyRule>> rules() const override {
    return settled(ask_rules);
  }
  [[nodiscard]] Result<std::vector<Neighbour>> neighbours() const override {
    return settled([] { return ask_neighbours(kMostRows); });
  }
  [[nodiscard]] Result<Sockets> sockets() const override {
    return settled([this] { return ask_sockets(files(), kMostRows); });
  }
  [[nodiscard]] Result<LinkQos> qos(const std::string& interface) const override {
    return ask_qos(interface);
  }
  [[nodiscard]] Result<RouteAnswer> route_to(const Address& destination,
                                             const std::optional<Address>& source) const override {
    return ask_route_to(destination, source);
  }
  [[nodiscard]] Result<std::string> kernel_log() const override { return read_kernel_log(); }
  [[nodiscard]] Result<ChildOutput> run(const Child& child, Deadline deadline) const override {
    return run_child(child, deadline);
  }

 private:
  Environment environment_;
};

}  // namespace

Result<std::unique_ptr<Machine>> Machine::live() {
  DD_TRY(auto files, RootTree::open("/"));
  return std::make_unique<LiveMachine>(std::move(files));
}

const Processes& Machine::processes() const {
  std::call_once(processes_read_, [this] { processes_ = read_processes(files_, self().uptime_s); });
  return processes_;
}

const SocketOwners& Machine::socket_owners() const {
  std::call_once(owners_read_, [this] { owners_ = read_socket_owners(files()); });
  return owners_;
}

}  // namespace distdoctor::machine
