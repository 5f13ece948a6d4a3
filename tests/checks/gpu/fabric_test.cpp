#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict fabric(Severity severity,
               Certainty certainty,
               const std::string& state,
               const std::string& fix) {
  return {
      .code = "gpu-fabric-not-ready",
      .severity = severity,
      .certainty = certainty,
      .symptom = Symptom::crash,
      .says = "on node1 are not in the NVSwitch fabric",
      .blamed = {"node1"},
      .evidence = {"node1 GPU 0000:20:00.0 fabric: " + state +
                   ", not completed, success; nvidia-smi -q -i 0000:20:00.0 | grep -A 3 Fabric"},
      .fixes = {fix}};
}

const std::string kRestart =
    "node1: apps=$(nvidia-smi --query-compute-apps=pid --format=csv,noheader) && test -z \"$apps\" "
    "&& systemctl restart nvidia-fabricmanager && nvidia-smi -q | grep -A 2 Fabric";

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_nvml(w, 8); }},
    {"in progress",
     [](World& w) {
       add_nvml(w, 4);
       change_nvml_gpu(w, 1, [](NvmlGpu& gpu) { gpu.fabric_state = "in progress"; });
     },
     {fabric(blocker, likely, "in progress", kRestart)}},
    {"in a container: the fabric is the host's",
     [](World& w) {
       add_nvml(w, 4);
       World::change(w.node(1).identity, [](Identity& it) { it.container = "docker"; });
       change_nvml_gpu(w, 1, [](NvmlGpu& gpu) { gpu.fabric_state = "in progress"; });
     },
     {fabric(blocker, likely, "in progress", "node1: (manual)")}},
    {"not started",
     [](World& w) {
       add_nvml(w, 4);
       change_nvml_gpu(w, 1, [](NvmlGpu& gpu) { gpu.fabric_state = "not started"; });
     },
     {fabric(blocker, likely, "not started", kRestart)}},
    {"completed, but not well; a program runs on another GPU",
     [](World& w) {
       add_nvml(w, 4);
       change_nvml_gpu(w, 1, [](NvmlGpu& gpu) { gpu.fabric_status = "unknown error"; });
       change_nvml_gpu(w, 0, [](NvmlGpu& gpu) { gpu.processes = {{.pid = 7}}; });
     },
     {fabric(blocker, likely, "completed, unknown error", "node1: (manual)")}},
    {"a job without NCCL",
     [](World& w) {
       add_nvml(w, 4);
       w.cluster.job.nccl = Use::no;
       change_nvml_gpu(w, 1, [](NvmlGpu& gpu) { gpu.fabric_state = "in progress"; });
     },
     {fabric(notice, likely, "in progress", kRestart)}},
    {"near miss: GPUs without a fabric, and a library too old to tell",
     [](World& w) {
       add_nvml(w, 4, {.fabric = false});
       change_nvml_gpu(w, 1, [](NvmlGpu& gpu) { gpu.fabric_state = ""; });
     },
     {},
     {},
     "no GPU tells of an NVSwitch fabric"},
    {"a single GPU of a virtual machine may do without",
     [](World& w) {
       add_nvml(w, 1);
       change_nvml_gpu(w, 0, [](NvmlGpu& gpu) {
         gpu.fabric_state = "not started";
         gpu.pci = "0000:20:00.0";
       });
     },
     {fabric(notice, possible, "not started", kRestart)}},
};

TEST_CASE("gpu/fabric") {
  run_nvml_cases("gpu/fabric", cases);
}

}  // namespace
}  // namespace distdoctor::testing
