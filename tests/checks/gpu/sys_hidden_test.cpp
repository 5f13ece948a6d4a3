#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void hide(World& w, std::vector<std::string> folders) {
  w.node(1).world = distdoctor::World{.hidden = std::move(folders)};
  w.node(1).gpu = GpuFacts{.gpus = {{.pci = "0000:1b:00.0"}}};
}

Verdict hidden(Severity severity) {
  return {.code = "gpu-sys-hidden",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::slow,
          .says = "node1 shows nothing of /sys/bus/pci/devices, so that NCCL",
          .blamed = {"node1"},
          .evidence = {"node1 /sys/bus/pci/devices: empty, not what the kernel has; ls "
                       "/sys/bus/pci/devices; findmnt -R /sys"},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}, {}, {}, "no NCCL here takes the topology from /sys"},
    {"no PCI devices",
     [](World& w) { hide(w, {"/sys/bus/pci/devices", "/sys/class/net"}); },
     {hidden(degraded)}},
    {"an ssh login is not the job's world",
     [](World& w) {
       hide(w, {"/sys/bus/pci/devices"});
       w.node(1).context = Context::ssh;
     },
     {hidden(notice)}},
    {"near miss: links alone", [](World& w) { hide(w, {"/sys/class/net"}); }},
    {"near miss: no GPU",
     [](World& w) {
       hide(w, {"/sys/bus/pci/devices"});
       w.node(1).gpu = GpuFacts{};
     },
     {},
     {},
     "no NCCL here takes the topology from /sys"},
    {"near miss: NCCL was told",
     [](World& w) {
       hide(w, {"/sys/bus/pci/devices"});
       w.set("NCCL_TOPO_FILE", "/etc/topo.xml");
     },
     {},
     {},
     "no NCCL here takes the topology from /sys"},
    {"near miss: WSL is built so",
     [](World& w) {
       hide(w, {"/sys/bus/pci/devices"});
       World::change(w.node(1).world, [](distdoctor::World& world) { world.platform = "wsl"; });
     },
     {},
     {},
     "no NCCL here takes the topology from /sys"},
    {"unseen is a gap",
     [](World& w) { w.node(1).world = Unknown{.kind = Why::timed_out, .text = "late"}; },
     {},
     {"node1 world"},
     "no NCCL here takes the topology from /sys"},
};

TEST_CASE("gpu/sys_hidden") {
  run_cases("gpu/sys_hidden", cases);
}

}  // namespace
}  // namespace distdoctor::testing
