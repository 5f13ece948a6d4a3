#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void have(World& w, const std::string& torch_cuda, const std::string& driver_cuda) {
  add_nvml(w, 2);
  for (auto& node : w.cluster.nodes) {
    node.software = Software{.torch_cuda = torch_cuda};
    node.nccl_library = NcclLibrary{.path = "/lib/libnccl.so.2", .version = "2.21.5"};
    World::change(node.nvml, [](Nvml& nvml) { nvml.cuda = "13.0"; });
  }
  World::change(w.node(1).nvml, [&](Nvml& nvml) { nvml.cuda = driver_cuda; });
}

Verdict driver(Severity severity,
               Certainty certainty,
               const std::string& seen,
               const std::string& wanted) {
  return {.code = "gpu-driver-too-old",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::crash,
          .says = "PyTorch on node1 was built for CUDA",
          .blamed = {"node1"},
          .evidence = {"node1 newest CUDA of the driver: " + seen + ", not " + wanted +
                       " or newer; nvidia-smi | grep CUDA; python3 -c 'import torch; "
                       "print(torch.version.cuda)'"},
          .fixes = {"node1: (manual)"}};
}

Verdict nccl(const std::string& code,
             Severity severity,
             const std::string& seen,
             const std::string& wanted) {
  return {.code = code,
          .severity = severity,
          .certainty = seen == "2.25.1" ? possible : likely,
          .symptom = Symptom::crash,
          .says = seen,
          .blamed = {"node1"},
          .evidence = {"node1 NCCL at /lib/libnccl.so.2: " + seen + ", not " + wanted +
                       " or newer; python3 -c 'import torch; print(torch.cuda.nccl.version())'"},
          .fixes = {"node1: (manual)"}};
}

void blackwell(World& w, const std::string& version, const std::string& capability = "12.0") {
  have(w, "12.4", "12.8");
  change_nvml_gpu(w, 1, [&](NvmlGpu& gpu) { gpu.capability = capability; });
  w.node(1).nccl_library = NcclLibrary{.path = "/lib/libnccl.so.2", .version = version};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { have(w, "12.4", "12.4"); }},
    {"healthy: a newer minor version runs, too", [](World& w) { have(w, "12.8", "12.0"); }},
    {"healthy: an older one always", [](World& w) { have(w, "11.8", "13.0"); }},
    {"a driver of the major version before",
     [](World& w) { have(w, "12.1", "11.8"); },
     {driver(blocker, likely, "11.8", "12.0")}},
    {"CUDA 13",
     [](World& w) { have(w, "13.0", "12.9"); },
     {driver(blocker, likely, "12.9", "13.0")}},
    {"before 11 each minor version counted",
     [](World& w) { have(w, "10.2", "10.1"); },
     {driver(blocker, likely, "10.1", "10.2")}},
    {"a login may find another PyTorch",
     [](World& w) {
       have(w, "12.1", "11.8");
       w.node(1).context = Context::ssh;
     },
     {driver(notice, likely, "11.8", "12.0")}},
    {"an image may bring cuda-compat",
     [](World& w) {
       have(w, "12.1", "11.8");
       World::change(w.node(1).identity, [](Identity& identity) { identity.container = "docker"; });
     },
     {driver(notice, possible, "11.8", "12.0")}},
    {"NCCL of another CUDA than PyTorch",
     [](World& w) {
       have(w, "12.4", "12.4");
       w.node(1).nccl_library =
           NcclLibrary{.path = "/lib/libnccl.so.2", .version = "2.28.9", .cuda = "13"};
     },
     {{.code = "gpu-driver-too-old",
       .severity = blocker,
       .certainty = likely,
       .symptom = Symptom::crash,
       .says = "NCCL 2.28.9 on node1 (/lib/libnccl.so.2) was built for CUDA 13",
       .blamed = {"node1"},
       .evidence = {"node1 newest CUDA of the driver: 12.4, not 13.0 or newer; nvidia-smi | grep "
                    "CUDA"},
       .fixes = {"node1: (manual)"}}}},
    {"PyTorch and NCCL are one finding",
     [](World& w) {
       have(w, "13.0", "12.9");
       w.node(1).nccl_library = NcclLibrary{.version = "2.28.9", .cuda = "13.0"};
     },
     {driver(blocker, likely, "12.9", "13.0")}},
    {"near miss: no PyTorch, or a driver that does not say",
     [](World& w) {
       have(w, "", "11.8");
       World::change(w.node(2).nvml, [](Nvml& nvml) { nvml.cuda = ""; });
     }},
    {"NCCL of before the GPU",
     [](World& w) { blackwell(w, "2.21.5"); },
     {nccl("gpu-nccl-too-old", degraded, "2.21.5", "2.26.2")}},
    {"NCCL of the same time: some builds work",
     [](World& w) { blackwell(w, "2.25.1"); },
     {nccl("gpu-nccl-too-old", notice, "2.25.1", "2.26.2")}},
    {"near miss: new enough", [](World& w) { blackwell(w, "2.26.2"); }},
    {"near miss: an older GPU", [](World& w) { blackwell(w, "2.21.5", "9.0"); }},
    {"near miss: no version", [](World& w) { blackwell(w, ""); }},
    {"unknown facts are gaps",
     [](World& w) {
       have(w, "12.4", "12.4");
       w.node(1).software = Unknown{.kind = Why::failed};
       w.node(2).nccl_library = Unknown{.kind = Why::failed};
     },
     {},
     {"node1 software", "node2 nccl_library"}},
};

TEST_CASE("gpu/too_old") {
  run_cases("gpu/too_old", cases);
}

}  // namespace
}  // namespace distdoctor::testing
