#include "support/check_cases.h"
#include "support/gpu_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

template <class Change>
void change_pci(World& w, const std::string& address, Change change) {
  World::change(w.node(1).pci, [&](Pci& pci) { change(device_at(pci, address)); });
}

void drop_gpu(World& w, std::size_t node, std::size_t place) {
  World::change(w.node(node).gpu, [&](GpuFacts& gpu) {
    gpu.gpus.erase(gpu.gpus.begin() + static_cast<std::ptrdiff_t>(place));
  });
}

template <class Change>
void change_gpus(World& w, Change change) {
  World::change(w.node(1).gpu, [&](GpuFacts& facts) {
    for (Gpu& gpu : facts.gpus) change(gpu);
  });
}

void be_docker(World& w, const std::string& container = "docker") {
  World::change(w.node(1).identity, [&](Identity& identity) { identity.container = container; });
  w.node(1).context = Context::container;
}

Verdict about(const std::string& code,
              Severity severity,
              const std::string& says,
              const std::vector<std::string>& evidence,
              const std::string& fix = "node1: (manual)") {
  return {.code = code,
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = says,
          .blamed = {"node1"},
          .evidence = evidence,
          .fixes = {fix}};
}

const std::string kLook = ", not driven by nvidia; lspci -k -s 0000:20:00.0; nvidia-smi -L";

Verdict lost(Severity severity, const std::string& says, const std::string& how) {
  return about("gpu-missing", severity, says,
               {"node1 GPU 0000:20:00.0: on the PCI bus" + how + kLook});
}

Verdict shut(Severity severity, const std::string& says, int count, const std::string& how) {
  std::vector<std::string> evidence;
  for (int i = 0; i < count; ++i) {
    const auto node = "/dev/nvidia" + std::to_string(i);
    evidence.push_back("node1 " + node + ": " + how + ", not may be opened; ls -l " + node +
                       "; id");
  }
  return about("gpu-not-visible", severity, says, evidence);
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_gpus(w, 4); }},
    {"no GPU anywhere", [](World&) {}},
    {"the driver did not take one",
     [](World& w) {
       add_gpus(w, 4);
       change_pci(w, "0000:20:00.0", [](PciDevice& gpu) { gpu.driver = ""; });
       drop_gpu(w, 1, 1);
     },
     {lost(degraded, "the driver has lost 1 of 4 GPUs of node1", " without a driver")}},
    {"the job needs all of them",
     [](World& w) {
       add_gpus(w, 4);
       w.cluster.job.ranks_per_node = 4;
       change_pci(w, "0000:20:00.0", [](PciDevice& gpu) { gpu.driver = ""; });
       drop_gpu(w, 1, 1);
     },
     {lost(blocker, "the driver has lost 1 of 4", " without a driver")}},
    {"it has let one go",
     [](World& w) {
       add_gpus(w, 4);
       drop_gpu(w, 1, 1);
     },
     {lost(degraded, "lost 1 of 4", ", but not in /proc/driver/nvidia/gpus")}},
    {"near miss: a card for the desktop that no driver of today drives",
     [](World& w) {
       add_gpus(w, 4);
       change_pci(w, "0000:20:00.0", [](PciDevice& gpu) {
         gpu.driver = "";
         gpu.device = 0x128b;
       });
       drop_gpu(w, 1, 1);
     }},
    {"near miss: one that a guest has",
     [](World& w) {
       add_gpus(w, 4);
       change_pci(w, "0000:20:00.0", [](PciDevice& gpu) { gpu.driver = "vfio-pci"; });
       drop_gpu(w, 1, 1);
     }},
    {"near miss: a container has some of the host's GPUs",
     [](World& w) {
       add_gpus(w, 4);
       drop_gpu(w, 1, 1);
       be_docker(w);
     }},
    {"near miss: a list without any GPU may be hidden",
     [](World& w) {
       add_gpus(w, 1);
       drop_gpu(w, 1, 0);
     }},
    {"no driver, where the peers have it",
     [](World& w) {
       add_gpus(w, 1);
       change_pci(w, "0000:10:00.0", [](PciDevice& gpu) { gpu.driver = "nouveau"; });
       w.node(1).gpu = GpuFacts{};
     },
     {about("gpu-no-driver",
            blocker,
            "node1 has 1 NVIDIA GPU, but the NVIDIA driver is not loaded",
            {"node1 driver of GPU 0000:10:00.0: nouveau, not nvidia; cat "
             "/proc/driver/nvidia/version; lspci -k -d 10de:"},
            "node1: modprobe nvidia && nvidia-smi -L")}},
    {"near miss: no driver on any node: GPUs are not what this is about",
     [](World& w) {
       add_gpus(w, 1);
       for (auto& node : w.cluster.nodes) {
         node.gpu = GpuFacts{};
         World::change(node.pci, [](Pci& pci) { pci.devices[0].driver = ""; });
       }
     }},
    {"near miss: all GPUs of a node are its guests'",
     [](World& w) {
       add_gpus(w, 1);
       change_pci(w, "0000:10:00.0", [](PciDevice& gpu) { gpu.driver = "vfio-pci"; });
       w.node(1).gpu = GpuFacts{};
     }},
    {"a container without GPUs",
     [](World& w) {
       add_gpus(w, 2);
       be_docker(w);
       change_gpus(w, [](Gpu& gpu) { gpu.node_there = gpu.node_usable = false; });
     },
     {shut(blocker, "2 of 2 GPUs on node1 cannot be opened in this container", 2, "absent")}},
    {"a container with too few for its ranks",
     [](World& w) {
       add_gpus(w, 2);
       be_docker(w, "kubernetes");
       w.cluster.job.ranks_per_node = 2;
       change_gpus(w, [](Gpu& gpu) { gpu.node_there = gpu.node_usable = gpu.minor == 1; });
     },
     {shut(blocker, "1 of 2 GPUs on node1 cannot", 1, "absent")}},
    {"near miss: it has enough",
     [](World& w) {
       add_gpus(w, 2);
       be_docker(w);
       w.cluster.job.ranks_per_node = 1;
       change_gpus(w, [](Gpu& gpu) { gpu.node_there = gpu.node_usable = gpu.minor == 1; });
     }},
    {"near miss: on a host the nodes are made at the first use",
     [](World& w) {
       add_gpus(w, 2);
       change_gpus(w, [](Gpu& gpu) { gpu.node_there = gpu.node_usable = false; });
     }},
    {"not permitted; an ssh login may be another user's world",
     [](World& w) {
       add_gpus(w, 2);
       w.node(1).context = Context::ssh;
       change_gpus(w, [](Gpu& gpu) { gpu.node_usable = false; });
     },
     {shut(notice, "2 of 2 GPUs on node1 cannot be opened by this user", 2, "not permitted")}},
    {"not permitted in the job itself",
     [](World& w) {
       add_gpus(w, 2);
       change_gpus(w, [](Gpu& gpu) { gpu.node_usable = false; });
     },
     {shut(blocker, "2 of 2 GPUs", 2, "not permitted")}},
    {"unknown facts are gaps",
     [](World& w) {
       add_gpus(w, 2);
       w.node(0).gpu = Unknown{.kind = Why::timed_out};
       w.node(1).pci = Unknown{.kind = Why::denied};
     },
     {},
     {"node0 gpu", "node1 pci"}},
};

TEST_CASE("gpu/missing") {
  run_cases("gpu/missing", cases);
}

}  // namespace
}  // namespace distdoctor::testing
