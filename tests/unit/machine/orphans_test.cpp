#include "machine/orphans.h"

#include "base/text.h"
#include "machine/child.h"
#include "support/gone.h"
#include "support/temporary_folder.h"

#include <doctest/doctest.h>

#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::machine;  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;

TEST_CASE("a daemon of a child, and its own daemon, end with us") {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path + "/pids";
  const std::string rest = " >> " + file + "; exec sleep 600";
  // The inner shell's own number, not that of the shell around it.
  const std::string script = "setsid sh -c 'setsid sh -c \"echo \\$\\$" + rest + "\" & echo $$" +
                             rest + "' > /dev/null 2>&1 & until [ \"$(wc -l 2> /dev/null < " +
                             file + ")\" = 2 ]; do :; done";
  const pid_t agent = ::fork();
  REQUIRE(agent >= 0);
  if (agent == 0) {
    adopt_orphans();
    const auto output = run_child({.argv = {"sh", "-c", script}}, Deadline::after(20s));
    end_children(Deadline::after(20s));
    ::_exit(output ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(agent, &status, 0) == agent);
  CHECK(WEXITSTATUS(status) == 0);
  std::ifstream pids(file);
  int count = 0;
  for (pid_t pid = 0; pids >> pid; ++count) {
    const bool gone = testing::gone(pid);
    CHECK(gone);
    if (!gone) ::kill(pid, SIGKILL);
  }
  CHECK(count == 2);
}

TEST_CASE("who has children already adopts nobody, and ends none") {
  const pid_t agent = ::fork();
  REQUIRE(agent >= 0);
  if (agent == 0) {
    const pid_t earlier = ::fork();
    if (earlier == 0) {
      ::pause();
      ::_exit(0);
    }
    adopt_orphans();
    end_children(Deadline::after(20s));
    const bool spared = ::waitpid(earlier, nullptr, WNOHANG) == 0;
    ::kill(earlier, SIGKILL);
    ::_exit(spared ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(agent, &status, 0) == agent);
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("who adopts nobody ends nobody") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  end_children(Deadline::after(20s));
  CHECK(::waitpid(child, nullptr, WNOHANG) == 0);
  CHECK(run_child({.argv = {"true"}}, Deadline::after(20s)).has_value());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}
