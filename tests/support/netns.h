// Two hosts on one wire, as network namespaces, for tests of real packets. Needs root and ip(8);
// ask why_no_namespaces() first. All of it is gone with the object.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace distdoctor::testing {

// Empty: they can be made here.
inline std::string why_no_namespaces() {
  if (::geteuid() != 0) return "not root";
  if (std::system("ip netns list > /dev/null 2>&1") != 0) return "no ip(8)";
  if (std::system("nft --version > /dev/null 2>&1") != 0) return "no nft(8)";
  if (std::system("ethtool --version > /dev/null 2>&1") != 0) return "no ethtool(8)";
  static const bool can = std::system("unshare --net true > /dev/null 2>&1") == 0;
  return can ? "" : "no new network namespace";
}

// Runs a command line, with `sh -c`; its exit status.
inline int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
inline void must(const std::string& command) {
  if (const int status = shell(command); status != 0) {
    throw std::runtime_error(command + ": exit status " + std::to_string(status));
  }
}

class Namespace {
 public:
  explicit Namespace(std::string name) : name_(std::move(name)) {
    must("ip netns add " + name_ + " && ip -n " + name_ + " link set lo up");
  }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;
  ~Namespace() { shell("ip netns del " + name_); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int run(const std::string& command) const {
    return shell("ip netns exec " + name_ + " sh -c '" + command + "'");
  }
  void sh(const std::string& command) const {
    must("ip netns exec " + name_ + " sh -c '" + command + "'");
  }
  void nft(const std::string& rules) const {
    must("ip netns exec " + name_ + " nft -f - <<'END'\n" + rules + "\nEND");
  }
  // Calls `function` in a thread that lives in this namespace, as do the threads that it starts.
  template <class Function>
  auto in(Function function) const {
    decltype(function()) result{};
    std::exception_ptr thrown;
    std::thread([&] {
      try {
        enter();
        result = function();
      } catch (...) {
        thrown = std::current_exception();
      }
    }).join();
    if (thrown) std::rethrow_exception(thrown);
    return result;
  }

 private:
  void enter() const {
    const std::string path = "/run/netns/" + name_;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const int failed = fd < 0 ? -1 : ::setns(fd, CLONE_NEWNET);
    if (fd >= 0) ::close(fd);
    if (failed != 0) throw std::runtime_error("setns " + path);
  }
  std::string name_;
};

// `a` is 10.99.0.1 and fd99::1, `b` 10.99.0.2 and fd99::2, both on their eth0. Between them stands
// a switch whose ports `pa` and `pb` a test may narrow.
struct Wire {
  std::string prefix = "ddtest-" + std::to_string(::getpid()) + "-" + std::to_string(count()++);
  Namespace wire{prefix + "-s"};
  Namespace a{prefix + "-a"};
  Namespace b{prefix + "-b"};

  explicit Wire(int mtu = 1500) {
    const std::string size = " mtu " + std::to_string(mtu);
    wire.sh("ip link add br0 type bridge mcast_snooping 0 && ip link set br0 up" + size);
    plug(a, "pa", "1", size);
    plug(b, "pb", "2", size);
  }

 private:
  static int& count() {
    static int made = 0;
    return made;
  }
  void plug(const Namespace& host,
            const std::string& port,
            const char* last,
            const std::string& size) const {
    wire.sh("ip link add " + port + size + " type veth peer name eth0" + size + " netns " +
            host.name() + " && ip link set " + port + " master br0 up");
    host.sh(std::string("ip addr add 10.99.0.") + last + "/24 dev eth0 && ip addr add fd99::" +
            last + "/64 dev eth0 nodad && ip link set eth0 up");
  }
};

}  // namespace distdoctor::testing
