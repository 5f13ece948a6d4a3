#include "support/check_cases.h"
#include "support/gpu_nodes.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr double kNow = 100'000;
const std::string kFatal = ": PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer";

void say(World& w, double age_s, const std::string& text) {
  log_line(w, 1, kNow - age_s, text);
}

Verdict met(Severity severity, Certainty certainty, const std::string& text) {
  return {.code = "gpu-pcie-errors",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::hang,
          .says = "the PCIe link of GPU 0000:10:00.0 of node1 met a fatal error",
          .blamed = {"node1"},
          .evidence = {"node1 kernel log, PCIe of GPU 0000:10:00.0: " + text +
                       ", not no fatal error; dmesg -T | grep -E 'AER|PCIe Bus Error'"},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_gpus(w, 2); }},
    {"at the GPU, as newer kernels say it",
     [](World& w) {
       add_gpus(w, 2);
       say(w, 600, "nvidia 0000:10:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), x");
     },
     {met(degraded,
          likely,
          "nvidia 0000:10:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), x")}},
    {"at its root port, days ago",
     [](World& w) {
       add_gpus(w, 2);
       say(w, 90'000, "pcieport 0000:00:00.0" + kFatal);
     },
     {met(notice, possible, "pcieport 0000:00:00.0" + kFatal)}},
    {"two hours ago, and the driver finds the GPU sound",
     [](World& w) {
       add_nvml(w, 2);
       say(w, 7'200, "pcieport 0000:00:00.0" + kFatal);
     },
     {met(notice, possible, "pcieport 0000:00:00.0" + kFatal)}},
    {"two hours ago, and it does not",
     [](World& w) {
       add_nvml(w, 2);
       change_nvml_gpu(w, 0, [](NvmlGpu& gpu) { gpu.error = "GPU is lost"; });
       say(w, 7'200, "pcieport 0000:00:00.0" + kFatal);
     },
     {met(degraded, likely, "pcieport 0000:00:00.0" + kFatal)}},
    {"near miss: not fatal, corrected, of another device",
     [](World& w) {
       add_gpus(w, 2);
       say(w, 9, "nvidia 0000:10:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=x");
       say(w, 9, "nvidia 0000:10:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer");
       say(w, 9, "nvme 0000:99:00.0" + kFatal);
     }},
    {"near miss: a bridge above several GPUs tells of none of them",
     [](World& w) {
       add_gpus(w, 2);
       World::change(w.node(1).pci,
                     [](Pci& pci) { device_at(pci, "0000:20:00.0").above = {"0000:00:00.0"}; });
       say(w, 9, "pcieport 0000:00:00.0" + kFatal);
     }},
    {"near miss: the driver was loaded after it",
     [](World& w) {
       add_gpus(w, 2);
       say(w, 90, "nvidia 0000:10:00.0" + kFatal);
       say(w, 80, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15");
     }},
    {"unknown facts are gaps",
     [](World& w) {
       add_gpus(w, 2);
       w.node(0).gpu = Unknown{.kind = Why::timed_out};
       w.node(1).pci = Unknown{.kind = Why::denied};
       w.node(2).kernel_log = Unknown{.kind = Why::denied};
     },
     {},
     {"node0 gpu", "node1 pci", "node2 kernel_log"}},
};

TEST_CASE("gpu/pcie_errors") {
  run_cases("gpu/pcie_errors", cases);
}

}  // namespace
}  // namespace distdoctor::testing
