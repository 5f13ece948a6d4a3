#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict about(const std::string& code,
              Severity severity,
              Certainty certainty,
              const std::string& says,
              const std::string& evidence) {
  return {.code = code,
          .severity = severity,
          .certainty = certainty,
          .symptom = code == "gpu-driver-hangs" ? Symptom::hang : Symptom::crash,
          .says = says,
          .blamed = {"node1"},
          .evidence = {evidence},
          .fixes = {"node1: (manual)"}};
}

Verdict hangs(Severity severity, Certainty certainty, const std::string& says) {
  return about("gpu-driver-hangs", severity, certainty, says,
               "node1 NVML: run vendor nvml: it did not end in time, not an answer within seconds; "
               "time timeout 60 nvidia-smi -L");
}

Verdict fails(Severity severity, Certainty certainty, const std::string& error) {
  return about("gpu-driver-fails", severity, certainty,
               "the NVIDIA driver of node1 refuses to tell of its GPUs",
               "node1 nvmlInit: " + error + ", not success; nvidia-smi; ls -l /dev/nvidia*");
}

Verdict missing(Severity severity) {
  return about("gpu-nvml-missing", severity, likely, "libnvidia-ml.so.1, which NCCL needs",
               "node1 libnvidia-ml.so.1: cannot open shared object file, not found by the loader; "
               "ldconfig -p | grep libnvidia-ml");
}

void hang(World& w) {
  add_nvml(w, 8);
  w.node(1).nvml = Unknown{Why::timed_out, "run vendor nvml: it did not end in time"};
}

void lack(World& w) {
  add_nvml(w, 2);
  fail_nvml(w, 12, "cannot open shared object file");
}

void fail(World& w, int code, const std::string& words) {
  add_nvml(w, 2);
  fail_nvml(w, code, words);
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_nvml(w, 8); }},
    {"it hangs on one node",
     hang,
     {hangs(degraded, likely, "it hangs, or one of its GPUs does; other nodes answered")},
     {"node1 nvml"}},
    {"near miss: nowhere in time: GPUs may have to be woken up",
     [](World& w) {
       hang(w);
       for (const std::size_t i : {0U, 2U, 3U}) w.node(i).nvml = Unknown{Why::failed, "signal 11"};
     },
     {hangs(notice, possible, "it hangs, or has to wake up its GPUs first (persistence mode off)")},
     {"node0 nvml", "node1 nvml", "node2 nvml", "node3 nvml"}},
    {"near miss: the peers have fewer to wake up",
     [](World& w) {
       hang(w);
       for (const std::size_t i : {0U, 2U, 3U}) {
         World::change(w.node(i).gpu, [](GpuFacts& facts) { facts.gpus.resize(1); });
       }
     },
     {hangs(notice, possible, "persistence mode off")},
     {"node1 nvml"}},
    {"near miss: its GPUs were never used yet",
     [](World& w) {
       hang(w);
       World::change(w.node(1).gpu, [](GpuFacts& facts) { facts.gpus[3].uuid = ""; });
     },
     {hangs(notice, possible, "persistence mode off")},
     {"node1 nvml"}},
    {"near miss: our helper died, or is not there",
     [](World& w) {
       add_nvml(w, 8);
       w.node(1).nvml = Unknown{Why::failed, "run vendor nvml: signal 11"};
     },
     {},
     {"node1 nvml"}},
    {"no library, in the job's world", lack, {missing(blocker)}},
    {"no library, for a login",
     [](World& w) {
       lack(w);
       w.node(1).context = Context::ssh;
     },
     {missing(notice)}},
    {"a lost GPU",
     [](World& w) { fail(w, 15, "GPU is lost"); },
     {fails(degraded, likely, "GPU is lost (15)")}},
    {"what may be meant for us only",
     [](World& w) { fail(w, 4, "insufficient permissions"); },
     {fails(notice, possible, "insufficient permissions (4)")}},
    {"near miss: two versions are another check's",
     [](World& w) { fail(w, 18, "driver/library version mismatch"); }},
    {"near miss: no driver",
     [](World& w) {
       for (auto& node : w.cluster.nodes) node.gpu = GpuFacts{};
     },
     {},
     {},
     "no node has the NVIDIA driver loaded"},
};

TEST_CASE("gpu/driver_answers") {
  run_cases("gpu/driver_answers", cases);
}

}  // namespace
}  // namespace distdoctor::testing
