#include "machine/processes.h"

#include "machine/machine.h"

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <string_view>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::machine;  // NOLINT(google-build-using-namespace)

namespace {

struct StatRow {
  std::string_view name;
  std::string_view text;
  std::optional<ProcessStat> stat;
};

constexpr std::string_view kTail =
    " 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1000 200 18446744073709551615 1 1";

const std::array<StatRow, 7> kStats = {{
    {"a plain one", "7 (python3) S 3 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1000\n",
     ProcessStat{"python3", "S", 3, 4711}},
    {"a name with brackets and blanks", "7 (a) b) c) R 1 17 17 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 9 1",
     ProcessStat{"a) b) c", "R", 1, 9}},
    {"a name with a newline", "7 (a\nb) Z 1 17 17 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 9 1",
     ProcessStat{"a\nb", "Z", 1, 9}},
    {"no brackets", "7 python3 S 3 17 17 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 9 1", std::nullopt},
    {"closed before opened", ") ( S 3 17 17 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 9 1", std::nullopt},
    {"cut short", "7 (python3) S 3 17", std::nullopt},
    {"nothing", "", std::nullopt},
}};

CapturedMachine small_machine() {
  CapturedMachine captured{.hostname = "node0", .uptime_s = 100};
  auto& files = captured.files;
  files["/proc/1/stat"].text = "1 (init) S 0" + std::string(kTail);
  files["/proc/1/status"].text = "Name:\tinit\nUid:\t0\t0\t0\t0\n";
  files["/proc/1/cmdline"].text = std::string("init\0", 5);
  files["/proc/1/environ"].text = std::string("A=1\0A=2\0B=\0broken\0", 18);
  files["/proc/1/fd/3"].link = "socket:[77]";
  files["/proc/9/stat"].text = "9 (python3) R 1" + std::string(kTail);
  files["/proc/9/status"].text = "Name:\tpython3\nUid:\t1000\t0\t0\t0\n";
  files["/proc/9/cmdline"].text = std::string("python3\0\0train.py\0", 18);
  files["/proc/9/environ"].error = EACCES;
  files["/proc/9/fd/0"].link = "/dev/null";
  files["/proc/9/fd/3"].link = "socket:[77]";
  files["/proc/9/fd/4"].link = "socket:[78]";
  files["/proc/self"].link = "1";
  files["/proc/1/ns/pid"].link = "pid:[4026531836]";
  files["/proc/meminfo"].text = "no process";
  return captured;
}

}  // namespace

TEST_CASE("/proc/PID/stat") {
  for (const auto& row : kStats) {
    CAPTURE(row.name);
    CHECK(parse_process_stat(row.text) == row.stat);
  }
}

TEST_CASE("command lines, environments, socket links, uids") {
  CHECK(parse_command_line("").empty());
  CHECK(parse_command_line(std::string_view("a\0", 2)) == std::vector<std::string>{"a"});
  CHECK(parse_command_line(std::string_view("a\0\0b", 4)) ==
        std::vector<std::string>{"a", "", "b"});
  CHECK(parse_socket_link("socket:[4711]") == 4711);
  CHECK_FALSE(parse_socket_link("socket:[x]").has_value());
  CHECK_FALSE(parse_socket_link("pipe:[4711]").has_value());
  CHECK(parse_real_uid("Name:\tx\nUid:\t1000\t0\t0\t0\n") == 1000);
  CHECK_FALSE(parse_real_uid("Uid:\n").has_value());
  CHECK_FALSE(parse_real_uid("").has_value());
}

TEST_CASE("the processes of a captured machine") {
  const auto machine = Machine::captured(small_machine());
  const auto& processes = machine->processes();
  REQUIRE(processes.all.size() == 2);
  const auto* const init = processes.find(1);
  REQUIRE(init != nullptr);
  CHECK(init->age_s == doctest::Approx(100 - 47.11));
  CHECK(*init->environment == std::map<std::string, std::string>{{"A", "1"}, {"B", ""}});
  const auto* const python = processes.find(9);
  REQUIRE(python != nullptr);
  CHECK(python->uid == 1000);
  CHECK(python->argv == std::vector<std::string>{"python3", "", "train.py"});
  CHECK(python->environment.why().kind == Why::denied);
  CHECK(python->environment.why().text == "open /proc/9/environ: Permission denied");
  CHECK_FALSE(processes.whole_namespace);
  CHECK_FALSE(processes.whole_machine);
  CHECK(processes.find(5) == nullptr);
}

TEST_CASE("who sees everything: no refusal, and the first pid namespace") {
  auto captured = small_machine();
  captured.files["/proc/9/environ"] = {.text = "A=1"};
  CHECK(Machine::captured(captured)->processes().whole_machine);
  captured.files["/proc/1/ns/pid"].link = "pid:[4026532000]";
  CHECK(Machine::captured(captured)->processes().whole_namespace);
  CHECK_FALSE(Machine::captured(captured)->processes().whole_machine);
}

TEST_CASE("who holds a socket") {
  auto captured = small_machine();
  const auto machine = Machine::captured(captured);
  const auto& owners = machine->socket_owners();
  CHECK(owners.owner(77) == 1);  // the lowest of two
  CHECK(owners.owner(78) == 9);
  CHECK_FALSE(owners.owner(79).has_value());
  CHECK_FALSE(owners.owner(0).has_value());
  CHECK(owners.holds(9, 77));
  CHECK_FALSE(owners.holds(1, 78));
  CHECK(owners.complete());
  captured.files["/proc/11/fd"].error = EACCES;
  CHECK_FALSE(Machine::captured(captured)->socket_owners().complete());
}
