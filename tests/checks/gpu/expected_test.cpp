#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <cstddef>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;

void expect(World& w, int count) {
  add_nvml(w, 8);
  w.expect.gpus_per_node = {.value = count, .origin = "policy.toml:4"};
}

void lose(World& w, std::size_t count) {
  World::change(w.node(1).gpu, [&](GpuFacts& facts) { facts.gpus.resize(8 - count); });
}

Verdict fewer(Severity severity, const std::string& working, const std::string& stock) {
  return {.code = "gpu-fewer-than-expected",
          .severity = severity,
          .certainty = Certainty::likely,
          .symptom = Symptom::crash,
          .says = "node1 has " + working + ", and policy.toml:4 says 8",
          .blamed = {"node1"},
          .evidence = {"node1 GPUs: " + stock +
                       ", not 8 GPUs (policy.toml:4); nvidia-smi -L || rocm-smi"},
          .fixes = {"node1: (manual)"}};
}

const std::string kEight = "8 x NVIDIA H100 80GB HBM3";
const std::string kSeven = "7 x NVIDIA H100 80GB HBM3";

const std::vector<CheckCase> cases = {
    {"nothing is expected",
     [](World& w) { add_nvml(w, 8); },
     {},
     {},
     "no policy says how many GPUs a node has"},
    {"healthy: as many", [](World& w) { expect(w, 8); }},
    {"healthy: more", [](World& w) { expect(w, 4); }},
    {"one is gone",
     [](World& w) {
       expect(w, 8);
       lose(w, 1);
     },
     {fewer(blocker, "7 working GPUs", kSeven)}},
    {"one does not answer",
     [](World& w) {
       expect(w, 8);
       change_nvml_gpu(w, 3, [](NvmlGpu& gpu) { gpu.error = "GPU is lost"; });
     },
     {fewer(blocker, "7 working GPUs", kEight + ", 1 of which does not answer")}},
    {"none at all",
     [](World& w) {
       expect(w, 8);
       w.node(1).gpu = GpuFacts{};
       w.node(1).nvml = Unknown{};
     },
     {fewer(blocker, "0 working GPUs", "none")}},
    {"a container over ssh may see less than the job",
     [](World& w) {
       expect(w, 8);
       lose(w, 1);
       w.node(1).context = Context::ssh;
       World::change(w.node(1).identity, [](Identity& it) { it.container = "docker"; });
     },
     {fewer(notice, "7 working GPUs", kSeven)}},
    {"the prolog of a resource manager is the machine's own",
     [](World& w) {
       expect(w, 8);
       lose(w, 1);
       w.node(1).context = Context::prolog;
     },
     {fewer(blocker, "7 working GPUs", kSeven)}},
    {"near miss: WSL, where nobody counts them",
     [](World& w) {
       expect(w, 8);
       w.node(1).gpu = GpuFacts{};
       w.node(1).nvml = Unknown{};
       World::change(w.node(1).world, [](distdoctor::World& it) { it.platform = "wsl"; });
     }},
    {"unknown GPUs are a gap",
     [](World& w) {
       expect(w, 8);
       w.node(2).gpu = Unknown{.kind = Why::timed_out};
     },
     {},
     {"node2 gpu"}},
};

TEST_CASE("gpu/expected") {
  run_cases("gpu/expected", cases);
}

}  // namespace
}  // namespace distdoctor::testing
