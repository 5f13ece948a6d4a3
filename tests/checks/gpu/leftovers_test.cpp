#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict held(Severity severity, const std::string& fix) {
  return {.code = "gpu-held-by-leftover",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = "1 rank of a job that is over still hold memory of 2 GPUs on node1",
          .blamed = {"node1"},
          .evidence = {"node1 pid 4711 of ada: holds 3072 MiB on 2 GPUs; its launcher is gone, not "
                       "gone with its job; ps -o pid,ppid,user,etime,args -p 4711; nvidia-smi"},
          .fixes = {fix}};
}

void leave(World& w, TrainingProcess process) {
  add_nvml(w, 4);
  for (const std::size_t i : {0U, 2U}) {
    change_nvml_gpu(w, i, [&](NvmlGpu& gpu) {
      gpu.processes = {{.pid = 99}, {.pid = 4711, .memory_bytes = std::int64_t{1536} << 20}};
    });
  }
  process.pid = 4711;
  process.user = "ada";
  w.node(1).processes = std::vector{process};
}

TrainingProcess stale() {
  return {.uid = 1000, .orphan = true};
}

void be_uid(World& w, int uid) {
  World::change(w.node(1).identity, [&](Identity& identity) { identity.uid = uid; });
}

const std::vector<CheckCase> cases = {
    {"healthy: programs that we know nothing of",
     [](World& w) {
       add_nvml(w, 8);
       for (auto& node : w.cluster.nodes) World::change(node.nvml, be_busy);
     }},
    {"ours",
     [](World& w) {
       leave(w, stale());
       be_uid(w, 1000);
     },
     {held(degraded, "node1: kill 4711")}},
    {"somebody else's",
     [](World& w) {
       leave(w, stale());
       be_uid(w, 1001);
     },
     {held(degraded, "node1: (manual)")}},
    {"a job without NCCL",
     [](World& w) {
       leave(w, stale());
       be_uid(w, 1001);
       w.cluster.job.nccl = Use::no;
     },
     {held(notice, "node1: (manual)")}},
    {"near miss: its launcher lives", [](World& w) { leave(w, {.uid = 1000}); }},
    {"near miss: it still talks to another node",
     [](World& w) { leave(w, {.uid = 1000, .orphan = true, .has_established_peer = true}); }},
    {"near miss: a zombie holds nothing",
     [](World& w) { leave(w, {.uid = 1000, .state = "Z", .orphan = true}); }},
    {"near miss: it has no GPU",
     [](World& w) {
       leave(w, stale());
       change_nvml_gpu(w, 0, [](NvmlGpu& gpu) { gpu.processes = {}; });
       change_nvml_gpu(w, 2, [](NvmlGpu& gpu) { gpu.processes = {{.pid = 99}}; });
     }},
    {"near miss: in a container pids are others",
     [](World& w) {
       leave(w, stale());
       World::change(w.node(1).identity, [](Identity& identity) { identity.container = "docker"; });
     }},
    {"unknown processes are a gap",
     [](World& w) {
       add_nvml(w, 2);
       w.node(1).processes = Unknown{.kind = Why::denied};
     },
     {},
     {"node1 processes"}},
};

TEST_CASE("gpu/leftovers") {
  run_nvml_cases("gpu/leftovers", cases);
}

}  // namespace
}  // namespace distdoctor::testing
