#include "support/check_cases.h"
#include "support/fake_isolations.h"
#include "support/gpu_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Isolation found(Ailment ailment, const std::string& level) {
  return {.layer = Layer::gdr,
          .ailment = ailment,
          .places = {{"node1", -1}},
          .workaround = {{"NCCL_NET_GDR_LEVEL", level}}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"hangs in a guest whose bridges redirect",
     [](World& w) {
       add_gpus(w, 1);
       World::change(w.node(1).pci, [](Pci& pci) {
         device_at(pci, "0000:00:00.0").acs_redirects = true;
         pci.virtual_machine = true;
       });
       isolate(w, found(Ailment::hangs, "LOC"));
     },
     {{.code = "collective-gdr-broken",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "GPUDirect RDMA on node1 hangs",
       .blamed = {"node1"},
       .evidence = with_rows(
           proof_rows(Ailment::hangs, " -x NCCL_NET_GDR_LEVEL=LOC"),
           {"node1 ACS of PCIe bridges: 1 redirect, not none between GPUs and RDMA cards; lspci "
            "-vvv | grep ACSCtl",
            "node1 virtual machine: yes: the host decides what a card may reach, not ATS on the "
            "cards, or bare metal; systemd-detect-virt"}),
       .fixes = {"*: NCCL_NET_GDR_LEVEL=LOC", "node1: (manual)"}}}},
    {"is slower than the CPU's memory",
     [](World& w) { isolate(w, found(Ailment::slow, "LOC")); },
     {{.code = "collective-gdr-broken",
       .severity = degraded,
       .certainty = proved,
       .symptom = Symptom::slow,
       .says = "is slow: 2.0 GB/s, and 12.0 GB/s without it",
       .blamed = {"node1"},
       .evidence = proof_rows(Ailment::slow, " -x NCCL_NET_GDR_LEVEL=LOC"),
       .fixes = {"*: NCCL_NET_GDR_LEVEL=LOC", "node1: (manual)"}}}},
    {"is not used where it helps",
     [](World& w) { isolate(w, found(Ailment::slow, "SYS")); },
     {{.code = "collective-gdr-unused",
       .severity = degraded,
       .certainty = proved,
       .symptom = Symptom::slow,
       .says = "does not use GPUDirect RDMA that is there on node1",
       .blamed = {"node1"},
       .evidence = proof_rows(Ailment::slow, " -x NCCL_NET_GDR_LEVEL=SYS"),
       .fixes = {"*: NCCL_NET_GDR_LEVEL=SYS"}}}},
    {"near miss: half of the proof is lost",
     [](World& w) {
       isolate(w, found(Ailment::hangs, "LOC"));
       lose_the_sound_run(w);
     }},
    {"near miss: another layer",
     [](World& w) { isolate(w, {.layer = Layer::ib, .ailment = Ailment::fails}); }},
};

TEST_CASE("collective/gdr") {
  run_cases("collective/gdr", cases);
}

}  // namespace
}  // namespace distdoctor::testing
