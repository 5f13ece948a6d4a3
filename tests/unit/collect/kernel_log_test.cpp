#include "collect/kernel_log.h"

#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

struct LineRow {
  std::string_view line;
  double uptime_s;
  std::string_view text;
};

const std::vector<LineRow> kLines = {
    {"<6>[   12.345678] eth0: up", 12.345678, "eth0: up"},
    {"<4>[90000.000001][ T1234] NVRM: Xid", 90000.000001, "NVRM: Xid"},
    {"<4>[    1.000000][    C0] NVRM: Xid", 1, "NVRM: Xid"},
    {"<4>[    1.000000] [drm] ready", 1, "[drm] ready"},
    {"<30>systemd[1]: Started", 0, "systemd[1]: Started"},
    {"<6>[x] no stamp", 0, "[x] no stamp"},
    {"<6>[-1.0] no stamp", 0, "[-1.0] no stamp"},
    {"<6>", 0, ""},
};

constexpr std::string_view kLog =
    "<6>[    5.000000] Linux version 6.8.0\n"
    "<6>[   10.000000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n"
    "<6>[   11.000000] usb 1-1: new device\n"
    "<4>[  100.000000] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"
    " and a line that goes on\n"
    "<3>[  101.000000] pcieport 0000:16:01.0: PCIe Bus Error: severity=Uncorrected (Fatal)\n"
    "<6>[  102.000000] mlx5_core 0000:18:00.0 eth2: Link down\n"
    "<3>[  103.000000] Out of memory: Killed process 77 (python) total-vm:1kB\n"
    "<3>[  104.000000] INFO: task python:12 blocked for more than 120 seconds.\n";

}  // namespace

TEST_CASE("lines of the kernel's log") {
  for (const LineRow& row : kLines) {
    CAPTURE(row.line);
    const auto line = parse_kernel_line(row.line);
    REQUIRE(line.has_value());
    CHECK(line->uptime_s == row.uptime_s);
    CHECK(line->text == row.text);
  }
  for (const std::string_view line : {"", "goes on", "<x>[ 1.0] a", "<6", "[ 1.0] a"}) {
    CHECK_FALSE(parse_kernel_line(line).has_value());
  }
  CHECK(parse_kernel_line("<6>[1.0] " + std::string(9'000, 'x'))->text.size() <= 400);
}

TEST_CASE("only what checks know is kept, in its order") {
  const auto log = parse_kernel_log(kLog, 200);
  CHECK(log.oldest_s == 5);
  CHECK(log.now_s == 200);
  REQUIRE(log.lines.size() == 6);
  CHECK(log.lines[0].uptime_s == 10);
  CHECK(log.lines[1].text == "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.");
  CHECK(log.lines[5].uptime_s == 104);
  CHECK(parse_kernel_log("", 7) == KernelLog{.now_s = 7});
}

TEST_CASE("a flood of one kind leaves the others, and its own last lines") {
  std::string text(kLog);
  for (int i = 0; i < 3'000; ++i) {
    text += "<3>[" + std::to_string(200 + i) + ".0] pcieport: PCIe Bus Error: severity=Corrected\n";
  }
  const auto log = parse_kernel_log(text, 4'000);
  CHECK(log.lines.size() == 5 + kMostOfAKind);
  CHECK(log.lines.front().uptime_s == 10);
  CHECK(log.lines.back().uptime_s == 3'199);
}

TEST_CASE("a log that may not be read is not an empty one") {
  machine::CapturedMachine captured{.uptime_s = 50};
  captured.kernel_log = Unknown{Why::denied, "syslog the kernel log: Operation not permitted"};
  NodeFacts node;
  collect_kernel_log(*machine::Machine::captured(captured), {}, node);
  CHECK(node.kernel_log.why().kind == Why::denied);
  captured.kernel_log = std::string(kLog);
  collect_kernel_log(*machine::Machine::captured(captured), {}, node);
  CHECK(node.kernel_log->lines.size() == 6);
  CHECK(node.kernel_log->now_s == 50);
}
