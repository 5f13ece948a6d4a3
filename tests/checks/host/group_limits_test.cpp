#include "support/check_cases.h"

#include <cstdint>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

void memory(World& w, std::int64_t now, std::int64_t max, std::int64_t kills) {
  w.node(1).world = distdoctor::World{.memory_max = max, .memory_now = now, .memory_kills = kills};
}
void in_docker(World& w) {
  World::change(w.node(1).identity, [](Identity& me) { me.container = "docker"; });
}
void killed_lately(World& w) {
  w.node(1).kernel_log = KernelLog{
      .lines = {{.uptime_s = 99'000,
                 .text = "Memory cgroup out of memory: Killed process 9 (python3) total-vm:1kB"}},
      .now_s = 100'000};
}

Verdict short_of(Severity severity, const char* says, const std::string& observed) {
  return {.code = "host-memory-limit",
          .severity = severity,
          .certainty = severity == degraded ? likely : possible,
          .symptom = Symptom::crash,
          .says = says,
          .blamed = {"node1"},
          .evidence = {"node1 memory.current, memory.max: " + observed +
                       ", not some room, and nothing killed; cat /sys/fs/cgroup/memory.max "
                       "/sys/fs/cgroup/memory.current /sys/fs/cgroup/memory.events"},
          .fixes = {"node1: (manual)"}};
}
Verdict crowded(Severity severity) {
  return {.code = "host-pids-limit",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = "the control group of node1 runs 500 threads and may run 512",
          .blamed = {"node1"},
          .evidence = {"node1 pids.current, pids.max: 500 of 512, not room for 16 or more; cat "
                       "/sys/fs/cgroup/pids.max /sys/fs/cgroup/pids.current"},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: a limit with room", [](World& w) { memory(w, 10 * kGiB, 64 * kGiB, 0); }},
    {"full, and something was killed",
     [](World& w) {
       memory(w, 63 * kGiB, 64 * kGiB, 2);
       in_docker(w);
     },
     {short_of(degraded,
               "the docker container of node1 has 63.0 GiB of the 64.0 GiB",
               "63.0 GiB in use, of 64.0 GiB; 2 killed since it began")}},
    {"full: a notice",
     [](World& w) { memory(w, 63 * kGiB, 64 * kGiB, 0); },
     {short_of(notice, "the control group of node1 has 63.0 GiB", "63.0 GiB in use, of 64.0 GiB")}},
    {"killed at some time: a notice",
     [](World& w) { memory(w, 1 * kGiB, 64 * kGiB, 1); },
     {short_of(notice,
               "in the control group of node1 the kernel has killed for memory",
               "1.0 GiB in use, of 64.0 GiB; 1 killed since it began")}},
    {"the kernel's log says more: host-out-of-memory",
     [](World& w) {
       memory(w, 1 * kGiB, 64 * kGiB, 1);
       killed_lately(w);
     }},
    {"an ssh login is not the job's world",
     [](World& w) {
       memory(w, 63 * kGiB, 64 * kGiB, 2);
       w.node(1).context = Context::ssh;
     },
     {[] {
       auto row = short_of(notice, "has 63.0 GiB of the 64.0 GiB",
                           "63.0 GiB in use, of 64.0 GiB; 2 killed since it began");
       row.certainty = likely;
       return row;
     }()}},
    {"threads",
     [](World& w) { w.node(1).world = distdoctor::World{.pids_max = 512, .pids_now = 500}; },
     {crowded(degraded)}},
    {"threads of an ssh login",
     [](World& w) {
       w.node(1).world = distdoctor::World{.pids_max = 512, .pids_now = 500};
       w.node(1).context = Context::ssh;
     },
     {crowded(notice)}},
    {"near miss: room for some",
     [](World& w) { w.node(1).world = distdoctor::World{.pids_max = 512, .pids_now = 496}; }},
    {"unseen is a gap",
     [](World& w) { w.node(1).world = Unknown{.kind = Why::timed_out, .text = "late"}; },
     {},
     {"node1 world"}},
};

TEST_CASE("host/group_limits") {
  run_cases("host/group_limits", cases);
}

}  // namespace
}  // namespace distdoctor::testing
