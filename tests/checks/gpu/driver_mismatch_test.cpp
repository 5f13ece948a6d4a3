#include "support/check_cases.h"
#include "support/gpu_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void set_library(World& w, const std::string& version) {
  World::change(w.node(1).gpu, [&](GpuFacts& gpu) { gpu.nvidia_library = version; });
}

void set_driver(World& w, std::size_t node, const std::string& version) {
  World::change(w.node(node).gpu, [&](GpuFacts& gpu) {
    gpu.nvidia_driver = version;
    gpu.nvidia_library = version;
  });
}

Verdict mismatch(Severity severity, Certainty certainty) {
  return {.code = "gpu-driver-mismatch",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::crash,
          .says = "node1 has the NVIDIA kernel module 550.54.15 loaded, but libcuda 550.90.07",
          .blamed = {"node1"},
          .evidence = {"node1 libcuda.so.1: 550.90.07, not 550.54.15; cat "
                       "/proc/driver/nvidia/version; ldconfig -p | grep libcuda"},
          .fixes = {"node1: (manual)"}};
}

void refuse(World& w) {
  w.node(1).nvml = Nvml{.error = "driver/library version mismatch", .error_code = 18};
}

Verdict said_by_nvml(Severity severity, bool both) {
  Verdict verdict = mismatch(severity, proved);
  if (!both) {
    verdict.says = "550.54.15 loaded, but libraries of another version";
    verdict.evidence.clear();
  }
  verdict.evidence.emplace_back(
      "node1 nvmlInit: driver/library version mismatch, not success; nvidia-smi");
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_gpus(w, 2); }},
    {"updated, and not rebooted",
     [](World& w) {
       add_gpus(w, 2);
       set_library(w, "550.90.07");
     },
     {mismatch(blocker, likely)}},
    {"what an ssh login would load is not what the job loads",
     [](World& w) {
       add_gpus(w, 2);
       w.node(1).context = Context::ssh;
       set_library(w, "550.90.07");
     },
     {mismatch(notice, likely)}},
    {"a program has met it: that holds for every context",
     [](World& w) {
       add_gpus(w, 2);
       w.node(1).context = Context::ssh;
       set_library(w, "550.90.07");
       log_line(w, 1, 10, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15");
       log_line(w, 1, 20, "NVRM: API mismatch: the client has the version 550.90.07, but");
     },
     {mismatch(blocker, proved)}},
    {"near miss: before the module was loaded, or with another version",
     [](World& w) {
       add_gpus(w, 2);
       w.node(1).context = Context::ssh;
       set_library(w, "550.90.07");
       log_line(w, 1, 10, "NVRM: API mismatch: the client has the version 550.90.07, but");
       log_line(w, 1, 20, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15");
       log_line(w, 1, 30, "NVRM: API mismatch: the client has the version 535.54.03, but");
     },
     {mismatch(notice, likely)}},
    {"the driver's own library says so, too",
     [](World& w) {
       add_gpus(w, 2);
       set_library(w, "550.90.07");
       refuse(w);
     },
     {said_by_nvml(blocker, true)}},
    {"only the driver's own library says so; what a login loads is not what the job loads",
     [](World& w) {
       add_gpus(w, 2);
       w.node(1).context = Context::ssh;
       refuse(w);
     },
     {said_by_nvml(notice, false)}},
    {"an image with libraries of its own",
     [](World& w) {
       add_gpus(w, 2);
       World::change(w.node(1).identity, [](Identity& identity) { identity.container = "docker"; });
       set_library(w, "550.90.07");
     },
     {mismatch(blocker, likely)}},
    {"a Gloo job does without",
     [](World& w) {
       add_gpus(w, 2);
       w.cluster.job.nccl = Use::no;
       set_library(w, "550.90.07");
     },
     {mismatch(notice, likely)}},
    {"near miss: no library was found, or no module (WSL)",
     [](World& w) {
       add_gpus(w, 2);
       set_library(w, "");
       World::change(w.node(2).gpu, [](GpuFacts& gpu) { gpu.nvidia_driver = ""; });
     }},
    {"one node has another driver",
     [](World& w) {
       add_gpus(w, 2);
       set_driver(w, 2, "535.183.01");
     },
     {{.code = "gpu-driver-differs",
       .severity = notice,
       .certainty = possible,
       .symptom = Symptom::crash,
       .says = "1 of 4 nodes do not have the NVIDIA driver 550.54.15",
       .blamed = {"node2"},
       .evidence = {"node2 NVIDIA kernel module: 535.183.01, not 550.54.15; cat "
                    "/proc/driver/nvidia/version"},
       .fixes = {"node2: (manual)"}}}},
    {"near miss: a node without GPUs",
     [](World& w) {
       add_gpus(w, 2);
       w.node(0).gpu = GpuFacts{};
     }},
    {"near miss: one node, and no library to compare with",
     [](World& w) {
       add_gpus(w, 1);
       w.cluster.nodes.resize(1);
       World::change(w.node(0).gpu, [](GpuFacts& gpu) { gpu.nvidia_library.clear(); });
     },
     {},
     {},
     "no library of the driver was found to compare with"},
    {"unknown GPUs are a gap",
     [](World& w) { w.node(2).gpu = Unknown{.kind = Why::timed_out}; },
     {},
     {"node2 gpu"},
     "no node has the NVIDIA driver loaded"},
};

TEST_CASE("gpu/driver_mismatch") {
  run_cases("gpu/driver_mismatch", cases);
}

}  // namespace
}  // namespace distdoctor::testing
