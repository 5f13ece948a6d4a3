// With a process of our own in the place of a rank, and a folder in the place of /dev/shm.
#include "probe/rank_watch.h"

#include "support/temporary_folder.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

using Folder = testing::TemporaryFolder;

// Makes the file when it is told to, and holds it open until it is killed.
class Rank {
 public:
  explicit Rank(const std::string& file) {
    REQUIRE(::pipe2(pipe_, O_CLOEXEC) == 0);
    pid = ::fork();
    if (pid == 0) {
      ::setsid();
      char go = 0;
      if (::read(pipe_[0], &go, 1) == 1) ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
      while (true) ::pause();
    }
    REQUIRE(pid > 0);
  }
  ~Rank() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  Rank(Rank&&) = delete;
  Rank& operator=(Rank&&) = delete;
  void make_it() const { REQUIRE(::write(pipe_[1], "g", 1) == 1); }
  // It stays a zombie, as a rank that its keeper has not buried yet.
  void crash() const {
    ::kill(pid, SIGKILL);
    siginfo_t how{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &how, WEXITED | WNOWAIT) == 0);
  }
  pid_t pid = 0;

 private:
  int pipe_[2] = {};
};

template <class Condition>
bool comes(Condition condition) {
  const auto patience = Deadline::after(10s);
  while (!condition()) {
    if (patience.expired()) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

}  // namespace

TEST_CASE("rank watch: what a rank made is known after it crashed") {
  const Folder folder;
  const std::string file = folder.path + "/nccl-Mine00";
  probe::RankWatch watch(folder.path);
  const Rank rank(file);
  REQUIRE(watch.add(rank.pid));
  rank.make_it();
  REQUIRE(comes([&] { return !watch.noted(rank.pid).empty(); }));
  rank.crash();
  const auto segments = watch.take(rank.pid);
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].path == file);
  probe::remove_unused(segments);
  CHECK_FALSE(fs::exists(file));
}

TEST_CASE("rank watch: the end of all kills the ranks and removes what they have") {
  const Folder folder;
  const std::string file = folder.path + "/nccl-Mine01";
  const std::string other = folder.path + "/nccl-Theirs";
  probe::RankWatch watch(folder.path);
  const Rank rank(file);
  const Rank stranger(other);
  REQUIRE(watch.add(rank.pid));
  rank.make_it();
  stranger.make_it();
  REQUIRE(comes([&] { return fs::exists(file) && fs::exists(other); }));
  watch.end_all(Deadline::after(10s));
  CHECK_FALSE(fs::exists(file));
  CHECK(fs::exists(other));
  CHECK(::waitpid(rank.pid, nullptr, WNOHANG) == rank.pid);
  CHECK_FALSE(watch.add(stranger.pid));
}
