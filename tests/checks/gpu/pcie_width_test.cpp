#include "support/check_cases.h"
#include "support/gpu_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

template <class Change>
void change(World& w, std::size_t node, const std::string& address, Change change_one) {
  World::change(w.node(node).pci, [&](Pci& pci) { change_one(device_at(pci, address)); });
}

void narrow(PciDevice& device) {
  device.width = 8;
}

Verdict verdict(Severity severity, Certainty certainty, const std::string& node) {
  return {
      .code = "gpu-pcie-width",
      .severity = severity,
      .certainty = certainty,
      .symptom = Symptom::slow,
      .says = "GPU 0000:20:00.0 of " + node + " uses 8 of 16 PCIe lanes",
      .blamed = {node},
      .evidence = {node + " PCIe lanes of GPU 0000:20:00.0: 8, not 16; lspci -vv -s 0000:20:00.0 "
                          "| grep -E 'LnkCap:|LnkSta:'"},
      .fixes = {node + ": (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_gpus(w, 2); }},
    {"one GPU has half of its lanes, its sisters have all",
     [](World& w) {
       add_gpus(w, 2);
       change(w, 1, "0000:20:00.0", narrow);
     },
     {verdict(degraded, likely, "node1")}},
    {"all of that model have half: it may be the board",
     [](World& w) {
       add_gpus(w, 2);
       for (std::size_t node = 0; node < 4; ++node) {
         change(w, node, "0000:10:00.0", [](PciDevice& gpu) { gpu.device = 1; });
         if (node != 1) change(w, node, "0000:20:00.0", [](PciDevice& gpu) { gpu.device = 1; });
       }
       change(w, 1, "0000:20:00.0", narrow);
     },
     {verdict(notice, possible, "node1")}},
    {"near miss: the slot has no more",
     [](World& w) {
       add_gpus(w, 2);
       change(w, 1, "0000:20:00.0", narrow);
       change(w, 1, "0000:00:01.0", [](PciDevice& port) { port.max_width = 8; });
     }},
    {"near miss: the card has no more",
     [](World& w) {
       add_gpus(w, 2);
       change(w, 1, "0000:20:00.0", [](PciDevice& gpu) { gpu.width = gpu.max_width = 8; });
     }},
    {"near miss: a low speed is an idle GPU",
     [](World& w) {
       add_gpus(w, 2);
       change(w, 1, "0000:20:00.0", [](PciDevice& gpu) {
         gpu.speed_gts = 2.5;
         gpu.max_speed_gts = 32;
       });
     }},
    {"near miss: a guest, a GPU that a guest has, and a port that says nothing",
     [](World& w) {
       add_gpus(w, 2);
       change(w, 1, "0000:20:00.0", narrow);
       World::change(w.node(1).pci, [](Pci& pci) { pci.virtual_machine = true; });
       change(w, 2, "0000:20:00.0", [](PciDevice& gpu) {
         gpu.width = 8;
         gpu.driver = "vfio-pci";
       });
       change(w, 3, "0000:20:00.0", narrow);
       change(w, 3, "0000:00:01.0", [](PciDevice& port) { port.max_width.reset(); });
     }},
    {"unknown devices are a gap",
     [](World& w) { w.node(2).pci = Unknown{.kind = Why::denied}; },
     {},
     {"node2 pci"},
     "no bus tells how many lanes its GPUs use"},
};

TEST_CASE("gpu/pcie_width") {
  run_cases("gpu/pcie_width", cases);
}

}  // namespace
}  // namespace distdoctor::testing
