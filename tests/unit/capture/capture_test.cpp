#include "capture/capture.h"

#include "capture/redact.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::capture;  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;

namespace {

machine::CapturedMachine small_machine() {
  machine::CapturedMachine captured{.hostname = "node0", .release = "6.1.0", .uid = 7, .now_s = 5};
  captured.environment = {{"NCCL_DEBUG", "INFO"}};
  captured.limits = {{"nofile", {.soft = 1024}}};
  captured.links = std::vector{Link{.name = "lo", .index = 1, .kind = LinkKind::loopback}};
  captured.rules = Unknown{Why::denied, "no"};
  captured.sockets = std::vector{machine::SocketRow{.listening = true, .local_port = 22}};
  captured.routes_to["10.0.0.1"] = {.interface = "eth0"};
  captured.children["getent ahosts node0"] = {2, "", "x"};
  captured.files["/proc/7/environ"].text = std::string("RANK=0\0WANDB_API_KEY=abc\0", 25);
  captured.files["/proc/self"].link = "7";
  captured.files["/etc/hosts"].text = "127.0.0.1 localhost\n";
  captured.file_systems["/dev/shm"] = {.size = 64, .free = 1, .free_for_root = 2, .files_free = 9};
  captured.qos["rdma0"] = {.trust = "dscp", .by_dscp = {{26, 3}}, .pause = 8};
  return captured;
}

}  // namespace

TEST_CASE("a machine on paper reads back as it was written") {
  const auto captured = small_machine();
  const auto again = read(write(captured), "node0.json");
  REQUIRE(again.has_value());
  CHECK(*again == captured);
}

TEST_CASE("a text that is no machine says so, with its name") {
  CHECK(read("{}", "x.json").error().attempt == "read x.json");
  CHECK_FALSE(read("", "x.json").has_value());
  CHECK_FALSE(read(R"({"schema": "distdoctor-facts/1", "machine": {}})", "x.json").has_value());
  CHECK(read(R"({"schema": "distdoctor-machine/1", "machine": {"hostname": "a"}})", "x.json")
            .value()
            .hostname == "a");
}

TEST_CASE("a recorder notes what was asked, and nothing that must not leave a process") {
  const auto original = machine::Machine::captured(small_machine());
  Recorder recorder(*original);
  auto& machine = recorder.machine();
  CHECK(machine.files().read("/proc/7/environ").value().size() == 25);
  CHECK_FALSE(machine.files().read("/nothing").has_value());
  CHECK(machine.files().list("/proc").value().size() == 2);
  CHECK(machine.files().read_link("/proc/self").value() == "7");
  CHECK(machine.links().has_value());
  CHECK_FALSE(machine.rules().has_value());
  CHECK(machine.qos("rdma0").has_value());
  CHECK(machine.qos("eth0").error().errno_value == EOPNOTSUPP);
  CHECK(machine.files().file_system("/dev/shm")->files_free == 9);
  CHECK(machine.run({.argv = {"getent", "ahosts", "node0"}}, Deadline::after(1s)).has_value());
  CHECK(machine.route_to(*Address::parse("10.0.0.1"), std::nullopt).has_value());
  const auto notes = recorder.notes();
  CHECK(notes.hostname == "node0");
  CHECK(notes.files.at("/proc/7/environ").text == std::string("RANK=0\0", 7));
  CHECK(notes.files.at("/proc/self").link == "7");
  CHECK_FALSE(notes.files.contains("/etc/hosts"));  // nobody asked
  CHECK(notes.links == small_machine().links);
  CHECK(notes.rules.why().kind == Why::denied);
  CHECK_FALSE(notes.sockets.known());
  CHECK(notes.children == small_machine().children);
  CHECK(notes.routes_to == small_machine().routes_to);
  CHECK(notes.file_systems == small_machine().file_systems);
  CHECK(notes.qos == small_machine().qos);
}

TEST_CASE("a file that is no text is kept byte by byte") {
  machine::CapturedMachine before;
  before.files["/sys/config"].text = std::string("\xde\x10\0\xff", 4);
  const auto original = machine::Machine::captured(before);
  Recorder recorder(*original);
  CHECK(recorder.machine().files().read_head("/sys/config", 2).has_value());
  CHECK(recorder.machine().files().read("/sys/config").has_value());
  CHECK(recorder.notes().files.at("/sys/config").hex == "de1000ff");
  const auto again = read(write(recorder.notes()), "node0.json");
  REQUIRE(again.has_value());
  const auto machine = machine::Machine::captured(*again);
  CHECK(machine->files().read("/sys/config").value() == before.files["/sys/config"].text);
  CHECK(machine->files().info("/sys/config")->size == 4);
}

TEST_CASE("of what a site's own program printed no secret is kept") {
  machine::CapturedMachine before;
  before.children["/checks/a"] = {.exit_code = 2, .out = "http://ann:s3cr3t@host down\n"};
  const auto original = machine::Machine::captured(before);
  Recorder recorder(*original);
  CHECK(recorder.machine().run({.argv = {"/checks/a"}}, Deadline::after(1s)).has_value());
  CHECK(recorder.notes().children.at("/checks/a").out == "http://ann:***@host down\n");
}

TEST_CASE("what of a file is kept") {
  CHECK(redacted("/proc/7/cmdline", std::string_view("x\0--token\0s3cret\0", 17)) ==
        std::string("x\0--token\0***\0", 14));
  CHECK(redacted("/proc/7/maps", "1-2 rw-p 0 00:00 0\n3-4 r-xp 0 08:01 1 /lib/x.so\n") ==
        "3-4 r-xp 0 08:01 1 /lib/x.so\n");
  CHECK(redacted("/x/libnccl.so.2", "ELF NCCL version 2.28.9") == "NCCL version 2.28.9");
  CHECK(redacted("/etc/hosts", "a\n") == "a\n");
  CHECK(redacted("/x", std::string(2'000'000, 'x')).empty());
}
