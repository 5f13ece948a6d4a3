#include "support/check_cases.h"
#include "support/gpu_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict other(const std::string& has, const std::string& usual) {
  return {.code = "gpu-count-differs",
          .severity = notice,
          .certainty = possible,
          .symptom = Symptom::slow,
          .says = "1 of 4 nodes have other GPUs than " + usual,
          .blamed = {"node2"},
          .evidence = {"node2 GPUs: " + has + ", not " + usual + "; nvidia-smi -L || rocm-smi"},
          .fixes = {"node2: (manual)"}};
}

template <class Change>
void change_gpus(World& w, Change change) {
  World::change(w.node(2).gpu, [&](GpuFacts& facts) { change(facts.gpus); });
}

using Gpus = std::vector<Gpu>;

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_gpus(w, 8); }},
    {"healthy: none anywhere", [](World&) {}},
    {"one has lost a GPU",
     [](World& w) {
       add_gpus(w, 2);
       change_gpus(w, [](Gpus& gpus) { gpus.pop_back(); });
     },
     {other("1 x NVIDIA A100 80GB PCIe", "2 x NVIDIA A100 80GB PCIe")}},
    {"one has another model as well",
     [](World& w) {
       add_gpus(w, 2);
       change_gpus(w, [](Gpus& gpus) { gpus[0].model = "NVIDIA L4"; });
     },
     {other("1 x NVIDIA A100 80GB PCIe, 1 x NVIDIA L4", "2 x NVIDIA A100 80GB PCIe")}},
    {"one has none; AMD does not tell models",
     [](World& w) {
       add_gpus(w, 1, "");
       for (auto& node : w.cluster.nodes) {
         World::change(node.gpu, [](GpuFacts& facts) { facts.gpus[0].vendor = GpuVendor::amd; });
       }
       change_gpus(w, [](Gpus& gpus) { gpus.clear(); });
     },
     {other("none", "1 x AMD GPU")}},
    {"near miss: a Gloo job",
     [](World& w) {
       add_gpus(w, 2);
       change_gpus(w, [](Gpus& gpus) { gpus.pop_back(); });
       w.cluster.job.nccl = Use::no;
     }},
    {"unknown GPUs are a gap",
     [](World& w) {
       add_gpus(w, 2);
       w.node(2).gpu = Unknown{.kind = Why::timed_out};
     },
     {},
     {"node2 gpu"}},
};

TEST_CASE("gpu/count_differs") {
  run_cases("gpu/count_differs", cases);
}

}  // namespace
}  // namespace distdoctor::testing
