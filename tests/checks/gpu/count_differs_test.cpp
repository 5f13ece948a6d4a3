#include "support/check_cases.h"
#include "support/gpu_nodes.h"

#include <cstddef>
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

void lose_all(World& w, std::size_t node) {
  w.node(node).gpu = GpuFacts{};
  w.node(node).pci = Pci{};
}

Verdict none(Severity severity,
             Certainty certainty,
             const std::vector<std::string>& nodes,
             const std::string& others = "8 x NVIDIA A100 80GB PCIe") {
  Verdict verdict{.code = "gpu-none",
                  .severity = severity,
                  .certainty = certainty,
                  .symptom = Symptom::crash,
                  .says = "no GPU, where others have " + others,
                  .blamed = nodes};
  for (const std::string& node : nodes) {
    verdict.evidence.push_back(node + " GPUs: none, not " + others + "; nvidia-smi -L || rocm-smi");
    verdict.fixes.push_back(node + ": (manual)");
  }
  return verdict;
}

Verdict sides() {
  Verdict verdict{.code = "gpu-count-differs",
                  .severity = notice,
                  .certainty = possible,
                  .symptom = Symptom::slow,
                  .says =
                      "the nodes have different GPUs: 1 x NVIDIA A100 80GB PCIe on node2, node3; "
                      "2 x NVIDIA A100 80GB PCIe on node0, node1",
                  .blamed = {"node0", "node1", "node2", "node3"},
                  .fixes = {"*: (manual)"}};
  for (const char* row : {"node0 GPUs: 2", "node1 GPUs: 2", "node2 GPUs: 1", "node3 GPUs: 1"}) {
    verdict.evidence.push_back(std::string(row) +
                               " x NVIDIA A100 80GB PCIe, not the same on all "
                               "nodes; nvidia-smi -L || rocm-smi");
  }
  return verdict;
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
    {"one has none, and the job needs them",
     [](World& w) {
       add_gpus(w, 8);
       lose_all(w, 2);
     },
     {none(blocker, likely, {"node2"})}},
    {"half of them have none",
     [](World& w) {
       add_gpus(w, 8);
       lose_all(w, 2);
       lose_all(w, 3);
     },
     {none(blocker, likely, {"node2", "node3"})}},
    {"an ssh login into a container may see less than the job",
     [](World& w) {
       add_gpus(w, 8);
       lose_all(w, 2);
       w.node(2).context = Context::ssh;
       World::change(w.node(2).identity, [](Identity& it) { it.container = "docker"; });
     },
     {none(notice, likely, {"node2"})}},
    {"an ssh login to the machine itself does not",
     [](World& w) {
       add_gpus(w, 8);
       lose_all(w, 2);
       w.node(2).context = Context::ssh;
     },
     {none(blocker, likely, {"node2"})}},
    {"nobody said that the job uses GPUs",
     [](World& w) {
       add_gpus(w, 8);
       lose_all(w, 2);
       w.cluster.job.gloo = Use::maybe;
       w.cluster.job.settings.erase("NCCL_SOCKET_IFNAME");
     },
     {none(notice, possible, {"node2"})}},
    {"near miss: WSL counts none, a device file or NVML tells of some",
     [](World& w) {
       add_gpus(w, 8);
       for (std::size_t i = 1; i < 4; ++i) lose_all(w, i);
       World::change(w.node(1).world, [](distdoctor::World& it) { it.platform = "wsl"; });
       w.node(2).devices = Devices{.gpus = {"/dev/nvidia0"}};
       w.node(3).nvml = Nvml{.gpus = {{.index = 0}}};
     }},
    {"two and two: nobody is odd",
     [](World& w) {
       add_gpus(w, 2);
       for (std::size_t i = 2; i < 4; ++i) {
         World::change(w.node(i).gpu, [](GpuFacts& facts) { facts.gpus.pop_back(); });
       }
     },
     {sides()}},
    {"near miss: one node alone",
     [](World& w) {
       add_gpus(w, 2);
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"one has none; AMD does not tell models",
     [](World& w) {
       add_gpus(w, 1, "");
       for (auto& node : w.cluster.nodes) {
         World::change(node.gpu, [](GpuFacts& facts) { facts.gpus[0].vendor = GpuVendor::amd; });
       }
       lose_all(w, 2);
     },
     {none(blocker, likely, {"node2"}, "1 x AMD GPU")}},
    {"near miss: a Gloo job",
     [](World& w) {
       add_gpus(w, 2);
       change_gpus(w, [](Gpus& gpus) { gpus.pop_back(); });
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does not use NCCL"},
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
