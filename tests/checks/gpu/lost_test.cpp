#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict lost(Severity severity, const std::string& error) {
  return {.code = "gpu-lost",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = "1 of 4 GPUs on node1 no longer answer the driver",
          .blamed = {"node1"},
          .evidence = {"node1 GPU 1 asked by the driver: " + error +
                       ", not an answer; nvidia-smi -i 1"},
          .fixes = {"node1: (manual)"}};
}

void lose(World& w, const std::string& error) {
  add_nvml(w, 4);
  change_nvml_gpu(w, 1, [&](NvmlGpu& gpu) { gpu = {.index = 1, .error = error}; });
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_nvml(w, 4); }},
    {"one is lost", [](World& w) { lose(w, "GPU is lost"); }, {lost(degraded, "GPU is lost")}},
    {"the job needs it",
     [](World& w) {
       lose(w, "GPU requires reset");
       w.cluster.job.ranks_per_node = 4;
     },
     {lost(blocker, "GPU requires reset")}},
    {"an error without a name",
     [](World& w) { lose(w, "unknown error"); },
     {lost(degraded, "unknown error")}},
    {"a job without NCCL",
     [](World& w) {
       lose(w, "GPU is lost");
       w.cluster.job.nccl = Use::no;
     },
     {lost(notice, "GPU is lost")}},
    {"near miss: it is not for us", [](World& w) { lose(w, "insufficient permissions"); }},
};

TEST_CASE("gpu/lost") {
  run_nvml_cases("gpu/lost", cases);
}

}  // namespace
}  // namespace distdoctor::testing
