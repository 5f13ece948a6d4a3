#include "machine/open_child.h"

#include "support/gone.h"

#include <doctest/doctest.h>

#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::machine;  // NOLINT(google-build-using-namespace)
using distdoctor::testing::gone;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<OpenChild> sh(const std::string& script, std::size_t most = 1000) {
  auto child = OpenChild::start({.argv = {"sh", "-c", script}, .most_output = most});
  REQUIRE(child.has_value());
  return *std::move(child);
}

Result<std::string> ask(OpenChild& child,
                        const std::string& line,
                        std::chrono::seconds limit = 20s) {
  return child.ask(line, Deadline::after(limit));
}

}  // namespace

TEST_CASE("an open child answers line by line") {
  const auto child = sh("while read -r line; do echo \"got $line\"; done");
  CHECK(ask(*child, "one") == "got one");
  CHECK(ask(*child, "two words") == "got two words");
}

TEST_CASE(
    "an open child lives on when the thread that started it has ended, and goes with its object") {
  std::unique_ptr<OpenChild> child;
  std::thread([&child] { child = sh("while read -r line; do echo $$; sleep 600; done"); }).join();
  const auto pid = ask(*child, "");
  REQUIRE(pid.has_value());
  CHECK(::kill(std::stoi(*pid), 0) == 0);
  child.reset();
  CHECK(gone(std::stoi(*pid)));
}

TEST_CASE("what an open child does wrong is an error in its own words") {
  const auto silent = sh("sleep 600");
  CHECK(silent->ask("x", Deadline::after(50ms)).error().errno_value == ETIMEDOUT);
  const auto dead = sh("echo no such device >&2; exit 3");
  const auto answer = ask(*dead, "x");
  REQUIRE_FALSE(answer.has_value());
  CHECK(answer.error().errno_value == EPIPE);
  CHECK(answer.error().reason == "no such device");
  const auto loud = sh("head -c 5000 /dev/zero | tr '\\0' x; sleep 600", 1000);
  CHECK(ask(*loud, "x").error().errno_value == EMSGSIZE);
}

TEST_CASE("an open child that is not there says so when it is asked") {
  auto child = OpenChild::start({.argv = {"no-such-helper"}, .ours = true});
  REQUIRE(child.has_value());
  CHECK(ask(**child, "x").error().errno_value == ENOENT);
}
