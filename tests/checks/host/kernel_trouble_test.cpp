#include "support/check_cases.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr double kNow = 100'000;
const std::string kKilled =
    "Out of memory: Killed process 4711 (python3) total-vm:21474836kB, anon-rss:20971520kB";
constexpr const char* kStuck = "INFO: task python3:4711 blocked for more than 122 seconds.";

void log_line(World& w, double age_s, const std::string& text) {
  w.node(1).kernel_log =
      KernelLog{.lines = {{.uptime_s = kNow - age_s, .text = text}}, .oldest_s = 0, .now_s = kNow};
}

const std::string kCgroup =
    "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB";
const std::string kUid = ", shmem-rss:0kB, UID:5001 pgtables:9kB oom_score_adj:0";

// What older kernels write before the kill.
void add_constraint(World& w, const std::string& uid) {
  World::change(w.node(1).kernel_log, [&](KernelLog& log) {
    log.lines.insert(log.lines.begin(),
                     {.uptime_s = kNow - 60,
                      .text = "oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a,"
                              "task=python3,pid=4711,uid=" +
                              uid});
  });
}

void add_rank(World& w, int uid, const std::string& port) {
  World::change(w.node(1).processes, [&](std::vector<TrainingProcess>& all) {
    TrainingProcess rank{.pid = 7, .uid = uid};
    rank.env = std::map<std::string, std::string>{{"RANK", "1"}, {"MASTER_PORT", port}};
    all.push_back(std::move(rank));
  });
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

Verdict others(const std::string& line, const char* says = "a control group of node1 ran out") {
  Verdict verdict = told("host-out-of-memory", says, line);
  verdict.severity = notice;
  verdict.certainty = possible;
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a rank was killed a minute ago",
     [](World& w) { log_line(w, 60, kKilled); },
     {told("host-out-of-memory", "node1 ran out of memory: the kernel killed 1 Python", kKilled)}},
    {"torch names its threads",
     [](World& w) { log_line(w, 60, "Out of memory: Killed process 9 (pt_data_worker)"); },
     {told("host-out-of-memory",
           "killed 1 Python",
           "Out of memory: Killed process 9 (pt_data_worker)")}},
    {"another user's, in a control group of theirs",
     [](World& w) { log_line(w, 60, kCgroup + kUid); },
     {others(kCgroup + kUid)}},
    {"another user's, whose job runs beside ours",
     [](World& w) {
       log_line(w, 60, kCgroup + kUid);
       add_rank(w, 5001, "29999");
     },
     {others(kCgroup + kUid)}},
    {"another user's, though the whole node was short of memory",
     [](World& w) { log_line(w, 60, kKilled + kUid); },
     {others(kKilled + kUid, "node1 ran out of memory")}},
    {"a control group, and nobody says whose",
     [](World& w) { log_line(w, 60, kCgroup); },
     {others(kCgroup)}},
    {"ours, in our control group",
     [](World& w) { log_line(w, 60, kCgroup + ", UID:1000 pgtables:9kB"); },
     {told("host-out-of-memory",
           "a control group of node1 ran out of memory",
           kCgroup + ", UID:1000 pgtables:9kB")}},
    {"ours, by an older kernel's line before it",
     [](World& w) {
       log_line(w, 60, kCgroup);
       add_constraint(w, "1000");
     },
     {told("host-out-of-memory", "a control group of node1", kCgroup)}},
    {"another user's, by that line",
     [](World& w) {
       log_line(w, 60, kKilled);
       add_constraint(w, "5001");
     },
     {others(kKilled, "node1 ran out of memory")}},
    {"the user of this job's ranks, whom another one asks for",
     [](World& w) {
       log_line(w, 60, kCgroup + kUid);
       add_rank(w, 5001, "29500");
     },
     {told("host-out-of-memory", "a control group of node1", kCgroup + kUid)}},
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
