#include "machine/child.h"

#include "base/text.h"
#include "support/gone.h"

#include <doctest/doctest.h>

#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::machine;  // NOLINT(google-build-using-namespace)
using distdoctor::testing::gone;
using namespace std::chrono_literals;

namespace {

Result<ChildOutput> sh(const std::string& script, std::chrono::milliseconds limit = 20s) {
  return run_child({.argv = {"sh", "-c", script}}, Deadline::after(limit));
}

struct ShellRow {
  std::string name;
  std::string script;
  ChildOutput output;
};

const std::vector<ShellRow> kScripts = {
    {"both streams and the exit code", "echo out; echo err >&2; exit 7", {7, "out\n", "err\n"}},
    {"a signal", "kill -TERM $$", {143, "", ""}},
    {"nothing on stdin", "cat; echo end", {0, "end\n", ""}},
    {"one language", "echo $LC_ALL", {0, "C\n", ""}},
    {"no descriptor of ours", "ls /proc/self/fd", {0, "0\n1\n2\n3\n", ""}},  // 3 is ls's own
    {"a session of its own",
     "test $(cut -d' ' -f6 /proc/$$/stat) = $$ && echo yes",
     {0, "yes\n", ""}},
    {"a grandchild that keeps the pipes open is not waited for",
     "sleep 600 & echo started",
     {0, "started\n", ""}},
};

}  // namespace

TEST_CASE("what a child says and how it ends") {
  for (const auto& row : kScripts) {
    CAPTURE(row.name);
    const auto output = sh(row.script);
    REQUIRE(output.has_value());
    CHECK(output->exit_code == row.output.exit_code);
    CHECK(output->out == row.output.out);
    CHECK(output->err == row.output.err);
  }
}

TEST_CASE("a program that is not there is ENOENT") {
  const auto output = run_child({.argv = {"no-such-program-at-all"}}, Deadline::after(20s));
  REQUIRE_FALSE(output.has_value());
  CHECK(output.error().errno_value == ENOENT);
  CHECK(output.error().render() == "run no-such-program-at-all: No such file or directory");
  CHECK(run_child({.argv = {"/etc/passwd"}}, Deadline::after(20s)).error().errno_value == EACCES);
  CHECK_FALSE(run_child({}, Deadline::after(20s)).has_value());
}

TEST_CASE("a child that does not end is killed at the deadline, and what it started with it") {
  const std::string file = "/tmp/distdoctor-child-test-" + std::to_string(::getpid());
  const auto output = sh("sleep 600 & echo $! > " + file + "; wait", 300ms);
  REQUIRE_FALSE(output.has_value());
  CHECK(output.error().errno_value == ETIMEDOUT);
  const auto pid = sh("cat " + file + "; rm " + file);
  const auto number = parse_int<pid_t>(trim(pid.value().out));
  REQUIRE(number.has_value());
  CHECK(gone(*number));
}

TEST_CASE("of a flood only the bound is kept, and the child still ends") {
  const auto output = run_child(
      {.argv = {"head", "-c", "3000000", "/dev/zero"}, .most_output = 1000}, Deadline::after(20s));
  REQUIRE(output.has_value());
  CHECK(output->exit_code == 0);
  CHECK(output->out.size() == 1000);
}

TEST_CASE("many children at once") {
  std::vector<std::jthread> threads;
  std::vector<int> codes(16, -1);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    threads.emplace_back([&codes, i] {
      const auto output = sh("exit " + std::to_string(i));
      codes[i] = output ? output->exit_code : -2;
    });
  }
  threads.clear();
  for (std::size_t i = 0; i < codes.size(); ++i) CHECK(codes[i] == static_cast<int>(i));
}
