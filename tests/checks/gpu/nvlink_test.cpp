#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict down(Severity severity, int up, int usual) {
  return {.code = "gpu-nvlink-down",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::slow,
          .says = "1 GPU on node1 have NVLinks down",
          .blamed = {"node1"},
          .evidence = {"node1 GPU 0000:20:00.0 NVLinks up: " + std::to_string(up) + ", not " +
                       std::to_string(usual) +
                       ", as its neighbours have; nvidia-smi nvlink -s -i 0000:20:00.0"},
          .fixes = {"node1: (manual)"}};
}

void links_up(World& w, int count) {
  change_nvml_gpu(w, 1, [&](NvmlGpu& gpu) { gpu.nvlinks_active = count; });
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_nvml(w, 8); }},
    {"two of eighteen",
     [](World& w) {
       add_nvml(w, 8);
       links_up(w, 16);
     },
     {down(degraded, 16, 18)}},
    {"none, in a fabric",
     [](World& w) {
       add_nvml(w, 8);
       links_up(w, 0);
     },
     {down(degraded, 0, 18)}},
    {"a job without NCCL",
     [](World& w) {
       add_nvml(w, 8);
       links_up(w, 16);
       w.cluster.job.nccl = Use::no;
     },
     {down(notice, 16, 18)}},
    {"near miss: a card without a bridge beside pairs",
     [](World& w) {
       add_nvml(w, 5, {.nvlinks = 12, .nvlinks_active = 12});
       links_up(w, 0);
     }},
    {"near miss: cards that have no bridges", [](World& w) { add_nvml(w, 4, {.nvlinks = 12}); }},
    {"near miss: two against two",
     [](World& w) {
       add_nvml(w, 4, {.nvlinks = 12, .nvlinks_active = 12});
       links_up(w, 8);
       change_nvml_gpu(w, 0, [](NvmlGpu& gpu) { gpu.nvlinks_active = 8; });
     }},
    {"near miss: MIG switches them off",
     [](World& w) {
       add_nvml(w, 8);
       links_up(w, 0);
       change_nvml_gpu(w, 1, [](NvmlGpu& gpu) { gpu.mig = true; });
     }},
    {"near miss: another model",
     [](World& w) {
       add_nvml(w, 4);
       links_up(w, 12);
       change_nvml_gpu(w, 1, [](NvmlGpu& gpu) { gpu.name = "NVIDIA A100"; });
     }},
};

TEST_CASE("gpu/nvlink") {
  run_nvml_cases("gpu/nvlink", cases);
}

}  // namespace
}  // namespace distdoctor::testing
