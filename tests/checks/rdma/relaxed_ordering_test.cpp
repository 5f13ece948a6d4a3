#include "support/check_cases.h"
#include "support/hcas.h"

#include <optional>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// Two ConnectX-7 on every node, which may reorder.
void cards(World& w) {
  give_infiniband(w);
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) {
    change_rdma(w, i, [](Rdma& rdma) { rdma.devices[1].pci = "0000:2a:00.0"; });
    World::change(w.node(i).pci, [](Pci& pci) {
      pci.config_readable = true;
      for (const char* address : {"0000:18:00.0", "0000:2a:00.0"}) {
        pci.devices.push_back({.address = address,
                               .vendor = 0x15b3,
                               .device = 0x1021,
                               .device_class = 0x020700,
                               .relaxed_ordering = true});
      }
    });
  }
}
void set(World& w, std::size_t node, std::optional<bool> on) {
  World::change(w.node(node).pci, [&](Pci& pci) { pci.devices.front().relaxed_ordering = on; });
}
void be_guests(World& w) {
  for (NodeFacts& node : w.cluster.nodes) {
    World::change(node.pci, [](Pci& pci) { pci.virtual_machine = true; });
  }
}

Verdict differs() {
  return {.code = "rdma-relaxed-ordering-differs",
          .severity = notice,
          .certainty = possible,
          .symptom = Symptom::slow,
          .says = "PCIe relaxed ordering is off at RDMA cards of node2, and on at the same",
          .blamed = {"node2"},
          .evidence = {"node2 pci.0000:18:00.0.relaxed_ordering: off (mlx5_0), not on, as at the "
                       "same card of other nodes; lspci -s 0000:18:00.0 -vv | grep RlxdOrd   # as "
                       "root"},
          .fixes = {"node2: (manual)"}};
}
Verdict off() {
  Verdict verdict{.code = "rdma-relaxed-ordering-off",
                  .severity = notice,
                  .certainty = possible,
                  .symptom = Symptom::slow,
                  .says = "NCCL_IB_PCI_RELAXED_ORDERING=0 on node0, node1, node2, node3, which are",
                  .fixes = {"*: NCCL_IB_PCI_RELAXED_ORDERING unset"}};
  for (const char* node : {"node0", "node1", "node2", "node3"}) {
    verdict.blamed.emplace_back(node);
    verdict.evidence.push_back(
        std::string(node) +
        " NCCL_IB_PCI_RELAXED_ORDERING: NCCL_IB_PCI_RELAXED_ORDERING=0 (--env), not unset in a "
        "virtual machine: NCCL uses it where it can; printenv NCCL_IB_PCI_RELAXED_ORDERING");
  }
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy: no RDMA", [](World&) {}},
    {"healthy: on everywhere", cards},
    {"healthy: off everywhere",
     [](World& w) {
       cards(w);
       for (std::size_t i = 0; i < 4; ++i) set(w, i, false);
     }},
    {"off at one card of one node",
     [](World& w) {
       cards(w);
       set(w, 2, false);
     },
     {differs()}},
    {"near miss: most have it off, so that is how they are meant",
     [](World& w) {
       cards(w);
       for (const std::size_t i : {0U, 1U, 2U}) set(w, i, false);
     }},
    {"near miss: nobody may read it",
     [](World& w) {
       cards(w);
       set(w, 2, std::nullopt);
       World::change(w.node(2).pci, [](Pci& pci) { pci.config_readable = false; });
     },
     {},
     {"node2 pci.relaxed_ordering"}},
    {"near miss: a card without the capability",
     [](World& w) {
       cards(w);
       set(w, 2, std::nullopt);
     }},
    {"near miss: another card",
     [](World& w) {
       cards(w);
       set(w, 2, false);
       World::change(w.node(2).pci, [](Pci& pci) { pci.devices.front().device = 0x101b; });
     }},
    {"near miss: a guest, to whom a hypervisor shows what it likes",
     [](World& w) {
       cards(w);
       set(w, 2, false);
       World::change(w.node(2).pci, [](Pci& pci) { pci.virtual_machine = true; });
     }},
    {"near miss: a card that NCCL does not use",
     [](World& w) {
       cards(w);
       set(w, 2, false);
       set_and_predict(w, "NCCL_IB_HCA", "=mlx5_1");
     }},
    {"NCCL told to do without, in virtual machines",
     [](World& w) {
       cards(w);
       be_guests(w);
       w.set("NCCL_IB_PCI_RELAXED_ORDERING", "0");
     },
     {off()}},
    {"near miss: the same on bare metal",
     [](World& w) {
       cards(w);
       w.set("NCCL_IB_PCI_RELAXED_ORDERING", "0");
     }},
    {"near miss: NCCL told to use it",
     [](World& w) {
       cards(w);
       be_guests(w);
       w.set("NCCL_IB_PCI_RELAXED_ORDERING", "1");
     },
     {},
     {},
     "no RDMA card in use tells of relaxed ordering"},
    {"near miss: no card carries data",
     [](World& w) {
       be_guests(w);
       w.set("NCCL_IB_PCI_RELAXED_ORDERING", "0");
     }},
    {"near miss: no card tells",
     [](World& w) {
       cards(w);
       be_guests(w);
     },
     {},
     {},
     "no RDMA card in use tells of relaxed ordering"},
    {"near miss: NCCL uses none",
     [](World& w) {
       cards(w);
       set_and_predict(w, "NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "NCCL uses no RDMA port"},
    {"unseen is a gap",
     [](World& w) {
       cards(w);
       w.node(1).pci = Unknown{.kind = Why::denied, .text = "/sys: EACCES"};
     },
     {},
     {"node1 pci"}},
};

TEST_CASE("rdma/relaxed_ordering") {
  run_cases("rdma/relaxed_ordering", cases);
}

}  // namespace
}  // namespace distdoctor::testing
