#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict mig(Severity severity, const std::string& says) {
  return {
      .code = "gpu-mig-mode",
      .severity = severity,
      .certainty = severity == degraded ? likely : possible,
      .symptom = Symptom::crash,
      .says = says,
      .blamed = {"node1"},
      .evidence = {"node1 GPU 0000:20:00.0 MIG mode: enabled, not disabled, for a job of several "
                   "GPUs; nvidia-smi -i 0000:20:00.0 --query-gpu=mig.mode.current --format=csv"},
      .fixes = {"node1: (manual)"}};
}

Verdict shut(Severity severity) {
  return {
      .code = "gpu-compute-prohibited",
      .severity = severity,
      .certainty = severity == blocker ? likely : possible,
      .symptom = Symptom::crash,
      .says = "1 of 2 GPUs on node1 are set to let no program compute",
      .blamed = {"node1"},
      .evidence = {"node1 GPU 0000:20:00.0 compute mode: prohibited, not default; nvidia-smi -q "
                   "-i 0000:20:00.0 -d COMPUTE"},
      .fixes = {"node1: nvidia-smi -i 0000:20:00.0 -c DEFAULT"}};
}

Verdict by_hand(Verdict verdict) {
  verdict.fixes = {"node1: (manual)"};
  return verdict;
}

void split(World& w) {
  add_nvml(w, 2);
  change_nvml_gpu(w, 1, [](NvmlGpu& gpu) { gpu.mig = true; });
}

void prohibit(World& w, const std::string& mode = "prohibited") {
  add_nvml(w, 2);
  change_nvml_gpu(w, 1, [&](NvmlGpu& gpu) { gpu.compute_mode = mode; });
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_nvml(w, 2); }},
    {"healthy: one program a GPU, as clusters have it",
     [](World& w) { prohibit(w, "exclusive process"); }},
    {"MIG, and the ranks need the GPU",
     [](World& w) {
       split(w);
       w.cluster.job.ranks_per_node = 2;
     },
     {mig(degraded, "1 of 2 GPUs on node1 are split up by MIG")}},
    {"MIG, and one GPU is enough",
     [](World& w) {
       split(w);
       w.cluster.job.ranks_per_node = 1;
     },
     {mig(notice, "1 of 2 GPUs")}},
    {"MIG, and nobody said how many ranks", split, {mig(notice, "1 of 2 GPUs")}},
    {"no compute, and the ranks need the GPU",
     [](World& w) {
       prohibit(w);
       w.cluster.job.ranks_per_node = 2;
     },
     {shut(blocker)}},
    {"no compute on one that nobody needs", [](World& w) { prohibit(w); }, {shut(notice)}},
    {"no compute, in a container: the mode is the host's",
     [](World& w) {
       prohibit(w);
       World::change(w.node(1).identity, [](Identity& it) { it.container = "docker"; });
     },
     {by_hand(shut(notice))}},
    {"a job without NCCL",
     [](World& w) {
       prohibit(w);
       w.cluster.job.ranks_per_node = 2;
       w.cluster.job.nccl = Use::no;
     },
     {shut(notice)}},
};

TEST_CASE("gpu/mode") {
  run_nvml_cases("gpu/mode", cases);
}

}  // namespace
}  // namespace distdoctor::testing
