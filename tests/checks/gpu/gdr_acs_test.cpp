#include "checks/gpu/gdr_nodes.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

// On node1 ACS and the IOMMU are as Linux sets them where guests are expected.
void with_acs(World& w, const std::string& driver = "mlx5_core") {
  with_card(w, driver);
  World::change(w.node(1).pci, [](Pci& pci) {
    pci.iommu = "translated";
    device_at(pci, "0000:01:01.0").acs_redirects = true;
  });
}

template <class Change>
void change_pci(World& w, Change change) {
  World::change(w.node(1).pci, change);
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { with_card(w); }},
    {"healthy: no RDMA",
     [](World& w) { add_gpus(w, 2); },
     {},
     {},
     "no RDMA card that GPUs could use directly carries the job's data"},
    {"ACS at the GPU's port, and an IOMMU that translates",
     [](World& w) { with_acs(w); },
     {{.code = "gpu-gdr-acs",
       .severity = Severity::notice,
       .certainty = Certainty::possible,
       .symptom = Symptom::slow,
       .says = "PCIe bridges of node1 send traffic between GPUs and RDMA cards up",
       .blamed = {"node1"},
       .evidence = {"node1 ACS of 0000:01:01.0, between GPU 0000:10:00.0 and card 0000:11:00.0: "
                    "redirects, not no ReqRedir, no CmpltRedir; lspci -vvv -s 0000:01:01.0 | grep "
                    "ACSCtl; cat /sys/kernel/iommu_groups/*/type | sort | uniq -c"},
       .fixes = {"*: NCCL_NET_GDR_LEVEL=LOC", "node1: (manual)"}}}},
    {"near miss: the IOMMU passes addresses on",
     [](World& w) {
       with_acs(w);
       change_pci(w, [](Pci& pci) { pci.iommu = "identity"; });
     }},
    {"near miss: the card translates addresses itself",
     [](World& w) {
       with_acs(w);
       change_pci(w, [](Pci& pci) { device_at(pci, "0000:11:00.0").ats = true; });
     }},
    {"near miss: a guest",
     [](World& w) {
       with_acs(w);
       change_pci(w, [](Pci& pci) { pci.virtual_machine = true; });
     }},
    {"near miss: no GPUDirect RDMA in any way",
     [](World& w) {
       with_acs(w);
       World::change(w.node(1).gpu, [](GpuFacts& gpu) { gpu.peermem = gpu.nvidia_open = false; });
     }},
    {"near miss: sockets carry the data, another kind of card",
     [](World& w) {
       with_acs(w, "efa");
       w.set("NCCL_NET", "Socket");
     },
     {},
     {},
     "no RDMA card that GPUs could use directly carries the job's data"},
    {"near miss: the card stands elsewhere",
     [](World& w) {
       with_acs(w);
       change_pci(w, [](Pci& pci) { device_at(pci, "0000:11:00.0").above = {"0000:00:07.0"}; });
     }},
    {"what only root may read is not known",
     [](World& w) {
       with_acs(w);
       change_pci(w, [](Pci& pci) { pci.config_readable = false; });
     },
     {},
     {"node1 pci.acs"}},
    {"unknown facts are gaps",
     [](World& w) {
       with_card(w);
       w.node(0).gpu = Unknown{.kind = Why::timed_out};
       w.node(1).rdma = Unknown{.kind = Why::failed};
     },
     {},
     {"node0 gpu", "node1 rdma"}},
};

TEST_CASE("gpu/gdr_acs") {
  run_cases("gpu/gdr_acs", cases);
}

}  // namespace
}  // namespace distdoctor::testing
