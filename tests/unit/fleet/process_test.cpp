#include "fleet/process.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::fleet;  // NOLINT(google-build-using-namespace): a test of it

namespace {

Deadline soon() {
  return Deadline::after(std::chrono::seconds(20));
}

std::string all_of(const Fd& fd) {
  std::string text;
  char byte = 0;
  while (::read(fd.get(), &byte, 1) == 1) text += byte;
  return text;
}

}  // namespace

TEST_CASE("Process: its descriptors and its fate") {
  for (const auto wire : {Process::Wire::pipes, Process::Wire::socket}) {
    auto started = Process::start({"sh", "-c", "read x; echo \"$x\"; echo no >&2; exit 3"}, wire);
    REQUIRE(started.has_value());
    auto& [process, ends] = *started;
    REQUIRE(::write(ends.out.get(), "yes\n", 4) == 4);
    CHECK(all_of(ends.words) == "no\n");
    CHECK(all_of(ends.in) == "yes\n");
    CHECK(process.wait(soon()));
    CHECK(process.fate() == "ended with status 3");
  }
}

TEST_CASE("Process: a program that is not there") {
  const auto started = Process::start({"/nowhere/ssh"}, Process::Wire::pipes);
  REQUIRE_FALSE(started.has_value());
  CHECK(started.error().render() == "start /nowhere/ssh: No such file or directory");
}

TEST_CASE("Process: kill takes its whole group, also a stopped one") {
  auto started =
      Process::start({"sh", "-c", "sleep 100 & echo $!; kill -STOP $$"}, Process::Wire::pipes);
  REQUIRE(started.has_value());
  auto& [process, ends] = *started;
  std::string pid;
  char byte = 0;
  while (::read(ends.in.get(), &byte, 1) == 1 && byte != '\n') pid += byte;
  process.kill();
  CHECK(process.fate() == "was killed by signal 9");
  CHECK(all_of(ends.in).empty());  // end of file: the sleep, which held it too, is gone
  CHECK(all_of(ends.words).empty());
}
