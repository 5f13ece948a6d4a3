#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr double kNow = 100'000;
constexpr const char* kKilled =
    "Out of memory: Killed process 4711 (python3) total-vm:21474836kB, anon-rss:20971520kB";
constexpr const char* kStuck = "INFO: task python3:4711 blocked for more than 122 seconds.";

void log_line(World& w, double age_s, const std::string& text) {
  w.node(1).kernel_log =
      KernelLog{.lines = {{.uptime_s = kNow - age_s, .text = text}}, .oldest_s = 0, .now_s = kNow};
}

Verdict told(const char* code, const char* says, const std::string& line) {
  const bool killed = std::string(code) == "host-out-of-memory";
  return {.code = code,
          .severity = killed ? degraded : notice,
          .certainty = killed ? likely : possible,
          .symptom = killed ? Symptom::crash : Symptom::hang,
          .says = says,
          .blamed = {"node1"},
          .evidence = {"node1 kernel log: 60 s ago: " + line +
                       ", not nothing of the kind; dmesg -T | tail -n 50"},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a rank was killed a minute ago",
     [](World& w) { log_line(w, 60, kKilled); },
     {told("host-out-of-memory", "node1 ran out of memory: the kernel killed 1 Python", kKilled)}},
    {"torch names its threads",
     [](World& w) {
       log_line(w, 60, "Memory cgroup out of memory: Killed process 9 (pt_data_worker)");
     },
     {told("host-out-of-memory",
           "killed 1 Python",
           "Memory cgroup out of memory: Killed process 9 (pt_data_worker)")}},
    {"a task is stuck",
     [](World& w) { log_line(w, 60, kStuck); },
     {told("host-task-stuck", "on node1 the kernel reported 1 task stuck", kStuck)}},
    {"near miss: hours ago", [](World& w) { log_line(w, 7200, kKilled); }},
    {"near miss: another program",
     [](World& w) { log_line(w, 60, "Out of memory: Killed process 12 (chrome) total-vm:1kB"); }},
    {"near miss: a fault of a GPU is another check's",
     [](World& w) { log_line(w, 60, "NVRM: Xid (PCI:0000:10:00): 79, GPU has fallen off"); }},
    {"nobody may read it: a gap",
     [](World& w) { w.node(1).kernel_log = Unknown{.kind = Why::denied}; },
     {},
     {"node1 kernel_log"}},
};

TEST_CASE("host/kernel_trouble") {
  run_cases("host/kernel_trouble", cases);
}

}  // namespace
}  // namespace distdoctor::testing
