#include "support/check_cases.h"
#include "support/gpu_nodes.h"
#include "support/nvml_answers.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// What NVML says of the cards on node1.
void with_path(World& w, const std::string& path) {
  w.node(1).nvml = fake_nvml({.name = "NVIDIA A100 80GB PCIe",
                              .addresses = {gpu_address(0), gpu_address(1)},
                              .nvlinks = 12,
                              .nvlinks_active = 12,
                              .near_path = path});
}

// On all nodes two GPUs below one switch; on node1 ACS and the IOMMU are as Linux sets them where
// guests are expected.
void with_switch(World& w, const std::string& model = "NVIDIA A100 80GB PCIe") {
  add_gpus(w, 2, model);
  for (NodeFacts& node : w.cluster.nodes) {
    World::change(node.pci, [](Pci& pci) {
      device_at(pci, "0000:10:00.0").above = {"0000:00:00.0", "0000:01:00.0", "0000:02:00.0"};
      device_at(pci, "0000:20:00.0").above = {"0000:00:00.0", "0000:01:00.0", "0000:02:01.0"};
      for (const char* port : {"0000:01:00.0", "0000:02:00.0", "0000:02:01.0"}) {
        pci.devices.push_back(fake_bridge(port));
      }
    });
  }
  World::change(w.node(1).pci, [](Pci& pci) {
    pci.iommu = "translated";
    device_at(pci, "0000:02:00.0").acs_redirects = true;
    device_at(pci, "0000:02:01.0").acs_redirects = true;
  });
  with_path(w, "PXB");
}

template <class Change>
void change_pci(World& w, Change change) {
  World::change(w.node(1).pci, change);
}

Verdict redirects() {
  return {.code = "gpu-acs",
          .severity = notice,
          .certainty = possible,
          .symptom = Symptom::hang,
          .says = "PCIe bridges of node1 send traffic between GPUs up to the CPU",
          .blamed = {"node1"},
          .evidence =
              {"node1 ACS of 0000:02:00.0, between GPUs 0000:10:00.0 and 0000:20:00.0: "
               "redirects, not no ReqRedir, no CmpltRedir; lspci -vvv -s 0000:02:00.0 | grep "
               "ACSCtl",
               "node1 IOMMU: translates the GPUs' addresses, not passes them on, or is off; cat "
               "/sys/kernel/iommu_groups/*/type | sort | uniq -c"},
          .fixes = {"*: NCCL_P2P_DISABLE=1", "node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_gpus(w, 4); }},
    {"ACS at the ports of two GPUs, and an IOMMU that translates",
     [](World& w) { with_switch(w); },
     {redirects()}},
    {"near miss: an NVLink bridge joins the cards",
     [](World& w) {
       with_switch(w);
       with_path(w, "NV12");
     }},
    {"nobody asked the driver: a bridge may join them",
     [](World& w) {
       with_switch(w);
       w.node(1).nvml = Unknown{.kind = Why::timed_out};
     },
     {},
     {"node1 nvml.path"}},
    {"the driver does not say how they are joined",
     [](World& w) {
       with_switch(w);
       with_path(w, "");
     },
     {},
     {"node1 nvml.path"}},
    {"nobody asked the driver, and such cards have no bridge",
     [](World& w) {
       with_switch(w, "NVIDIA L40S");
       w.node(1).nvml = Unknown{.kind = Why::timed_out};
     },
     {redirects()}},
    {"near miss: both GPUs translate addresses themselves",
     [](World& w) {
       with_switch(w);
       change_pci(w, [](Pci& pci) {
         device_at(pci, "0000:10:00.0").ats = true;
         device_at(pci, "0000:20:00.0").ats = true;
       });
     }},
    {"only one of them does",
     [](World& w) {
       with_switch(w);
       change_pci(w, [](Pci& pci) {
         device_at(pci, "0000:10:00.0").ats = true;
         device_at(pci, "0000:20:00.0").ats = false;
       });
     },
     {redirects()}},
    {"near miss: the IOMMU passes addresses on",
     [](World& w) {
       with_switch(w);
       change_pci(w, [](Pci& pci) { pci.iommu = "identity"; });
     }},
    {"near miss: a guest",
     [](World& w) {
       with_switch(w);
       change_pci(w, [](Pci& pci) { pci.virtual_machine = true; });
     }},
    {"near miss: ACS only where both ways are one",
     [](World& w) {
       with_switch(w);
       change_pci(w, [](Pci& pci) {
         device_at(pci, "0000:00:00.0").acs_redirects = true;
         device_at(pci, "0000:02:00.0").acs_redirects = false;
         device_at(pci, "0000:02:01.0").acs_redirects = false;
       });
     }},
    {"near miss: root ports of their own",
     [](World& w) {
       add_gpus(w, 2);
       change_pci(w, [](Pci& pci) {
         pci.iommu = "translated";
         for (PciDevice& device : pci.devices) device.acs_redirects = true;
       });
     }},
    {"near miss: an NVSwitch carries it",
     [](World& w) {
       with_switch(w);
       change_pci(w, [](Pci& pci) {
         pci.devices.push_back(
             {.address = "0000:c1:00.0", .vendor = 0x10de, .device_class = 0x068000});
       });
     }},
    {"near miss: cards whose NVLink bridge may join them",
     [](World& w) { with_switch(w, "NVIDIA H100 NVL"); },
     {},
     {},
     "no two GPUs talk over PCIe bridges"},
    {"near miss: SXM boards have NVLink",
     [](World& w) { with_switch(w, "NVIDIA A100-SXM4-80GB"); },
     {},
     {},
     "no two GPUs talk over PCIe bridges"},
    {"near miss: GeForce does not talk over PCIe",
     [](World& w) { with_switch(w, "NVIDIA GeForce RTX 3090"); },
     {},
     {},
     "no two GPUs talk over PCIe bridges"},
    {"near miss: it is switched off already",
     [](World& w) {
       with_switch(w);
       set_p2p_disable(w, "1", "1");
     },
     {},
     {},
     "no two GPUs talk over PCIe bridges"},
    {"near miss: a Gloo job",
     [](World& w) {
       with_switch(w);
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does not use NCCL"},
    {"what only root may read is not known",
     [](World& w) {
       with_switch(w);
       change_pci(w, [](Pci& pci) {
         pci.config_readable = false;
         for (PciDevice& device : pci.devices) device.acs_redirects.reset();
       });
     },
     {},
     {"node1 pci.acs"}},
    {"unknown facts are gaps",
     [](World& w) {
       add_gpus(w, 2);
       w.node(0).gpu = Unknown{.kind = Why::timed_out};
       w.node(1).pci = Unknown{.kind = Why::denied};
     },
     {},
     {"node0 gpu", "node1 pci"}},
};

TEST_CASE("gpu/acs") {
  run_cases("gpu/acs", cases);
}

}  // namespace
}  // namespace distdoctor::testing
