#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <cstddef>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

const std::string kIdle = "no GPU is seen at work, and the link of an idle one is slow on purpose";

// Two GPUs of 32 GT/s on each node, all at work.
void work(World& w) {
  add_nvml(w, 2);
  for (NodeFacts& node : w.cluster.nodes) {
    World::change(node.nvml, be_busy);
    World::change(node.pci, [](Pci& pci) {
      for (PciDevice& device : pci.devices) device.speed_gts = device.max_speed_gts = 32;
    });
  }
}

void slow(World& w, std::size_t node = 1) {
  World::change(w.node(node).pci, [](Pci& pci) { device_at(pci, "0000:20:00.0").speed_gts = 8; });
}

Verdict verdict(Severity severity, Certainty certainty, const std::string& node = "node1") {
  return {.code = "gpu-pcie-speed",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::slow,
          .says = "GPU 0000:20:00.0 of " + node +
                  " is at work, and its PCIe link runs at 8 GT/s, where card and slot have 32",
          .blamed = {node},
          .evidence = {node + " PCIe speed of GPU 0000:20:00.0, 97 % busy in P0: 8 GT/s, not 32 "
                              "GT/s; nvidia-smi -i 0000:20:00.0 --query-gpu=utilization.gpu,pstate,"
                              "pcie.link.gen.current,pcie.link.gen.max --format=csv"},
          .fixes = {node + ": (manual)"}};
}

template <class Change>
void slow_and(World& w, Change change) {
  work(w);
  slow(w);
  change_nvml_gpu(w, 1, change);
}

const std::vector<CheckCase> cases = {
    {"healthy: at work, at full speed", work},
    {"healthy: idle, and slow to save power",
     [](World& w) {
       add_nvml(w, 2);
       for (std::size_t i = 0; i < 4; ++i) slow(w, i);
     },
     {},
     {},
     kIdle},
    {"one is slow, its sisters are not",
     [](World& w) {
       work(w);
       slow(w);
     },
     {verdict(degraded, likely)}},
    {"all of the model are slow: it may be the board",
     [](World& w) {
       work(w);
       for (NodeFacts& node : w.cluster.nodes) {
         World::change(node.pci, [](Pci& pci) { device_at(pci, "0000:10:00.0").device = 1; });
       }
       for (std::size_t i = 0; i < 4; ++i) slow(w, i);
     },
     {verdict(notice, possible, "node0"), verdict(notice, possible, "node1"),
      verdict(notice, possible, "node2"), verdict(notice, possible, "node3")}},
    {"near miss: the slot has no more",
     [](World& w) {
       work(w);
       slow(w);
       World::change(w.node(1).pci,
                     [](Pci& pci) { device_at(pci, "0000:00:01.0").max_speed_gts = 8; });
     }},
    {"near miss: the card has no more",
     [](World& w) {
       work(w);
       slow(w);
       World::change(w.node(1).pci,
                     [](Pci& pci) { device_at(pci, "0000:20:00.0").max_speed_gts = 8; });
     }},
    {"near miss: this one idles",
     [](World& w) { slow_and(w, [](NvmlGpu& gpu) { gpu.busy_percent = 3; }); }},
    {"near miss: a slow state",
     [](World& w) { slow_and(w, [](NvmlGpu& gpu) { gpu.performance_state = 8; }); }},
    {"near miss: nobody knows its state",
     [](World& w) { slow_and(w, [](NvmlGpu& gpu) { gpu.performance_state.reset(); }); }},
    {"near miss: nobody knows its use",
     [](World& w) { slow_and(w, [](NvmlGpu& gpu) { gpu.busy_percent.reset(); }); }},
    {"near miss: MIG", [](World& w) { slow_and(w, [](NvmlGpu& gpu) { gpu.mig = true; }); }},
    {"near miss: a guest",
     [](World& w) {
       work(w);
       slow(w);
       World::change(w.node(1).pci, [](Pci& pci) { pci.virtual_machine = true; });
     }},
    {"near miss: a port that says nothing",
     [](World& w) {
       work(w);
       slow(w);
       World::change(w.node(1).pci,
                     [](Pci& pci) { device_at(pci, "0000:00:01.0").max_speed_gts.reset(); });
     }},
    {"unknown devices are a gap",
     [](World& w) {
       work(w);
       w.node(2).pci = Unknown{.kind = Why::denied};
     },
     {},
     {"node2 pci"}},
    {"a driver that told nothing is a gap",
     [](World& w) {
       work(w);
       w.node(2).nvml = Unknown{.kind = Why::timed_out};
     },
     {},
     {"node2 nvml"}},
};

TEST_CASE("gpu/pcie_speed") {
  run_cases("gpu/pcie_speed", cases);
}

}  // namespace
}  // namespace distdoctor::testing
