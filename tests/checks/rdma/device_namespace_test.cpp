#include "support/check_cases.h"
#include "support/hcas.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// mlx5_0's card on every node, as the PCI bus shows it.
void cards(World& w, std::uint32_t device_class) {
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) {
    World::change(w.node(i).pci, [&](Pci& pci) {
      pci.devices.push_back({.address = "0000:18:00.0",
                             .vendor = 0x15b3,
                             .device = 0x1021,
                             .device_class = device_class,
                             .driver = "mlx5_core"});
    });
  }
}
void change_pci(World& w, void (*change)(PciDevice&)) {
  World::change(w.node(1).pci, [&](Pci& pci) { change(pci.devices.back()); });
}
void hide(World& w, std::size_t node) {
  change_rdma(w, node, [](Rdma& rdma) {
    rdma.namespace_mode = "exclusive";
    rdma.devices.clear();
  });
}
// node1 is a container with a network of its own.
void in_docker(World& w) {
  give_infiniband(w);
  cards(w, 0x020700);
  hide(w, 1);
  World::change(w.node(1).identity, [](Identity& identity) { identity.container = "docker"; });
}
void roce_in_docker(World& w) {
  in_docker(w);
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) {
    World::change(w.node(i).pci, [](Pci& pci) { pci.devices.back().device_class = 0x020000; });
  }
}

Verdict hidden(Severity severity, Certainty certainty, const std::string& rest) {
  return {.code = "rdma-device-netns",
          .severity = severity,
          .certainty = certainty,
          .symptom = severity == degraded ? Symptom::slow : Symptom::hang,
          .says =
              "node1 has RDMA cards (0000:18:00.0) and sees no RDMA device: each belongs to "
              "one network namespace (exclusive mode), " +
              rest,
          .blamed = {"node1"},
          .evidence = {"node1 rdma.namespace_mode: exclusive, and no device in "
                       "/sys/class/infiniband, not the devices of 0000:18:00.0; rdma system; rdma "
                       "dev; ls /sys/class/infiniband; lspci -s 0000:18:00.0"},
          .fixes = {"node1: (manual)"}};
}
const std::string kContainer = "and that is not this container's";
const std::string kShared = "RDMA devices are not kept to one network namespace";

const std::vector<CheckCase> cases = {
    {"healthy: no RDMA", [](World&) {}, {}, {}, kShared},
    {"healthy: namespaces share the devices", give_infiniband, {}, {}, kShared},
    {"healthy: exclusive, and the devices are here",
     [](World& w) {
       give_infiniband(w);
       cards(w, 0x020700);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         change_rdma(w, i, [](Rdma& rdma) { rdma.namespace_mode = "exclusive"; });
       }
     }},
    {"a container with a network of its own", in_docker, {hidden(blocker, likely, kContainer)}},
    {"RoCE: the same card is an RDMA device elsewhere",
     roce_in_docker,
     {hidden(blocker, likely, kContainer)}},
    {"a host, whose driver may not be loaded whole",
     [](World& w) {
       in_docker(w);
       World::change(w.node(1).identity, [](Identity& identity) { identity.container = ""; });
     },
     {hidden(blocker, possible, "perhaps another one, if their driver is loaded whole")}},
    {"nobody sees a device: slow",
     [](World& w) {
       in_docker(w);
       for (const std::size_t i : {0U, 2U, 3U}) {
         change_rdma(w, i, [](Rdma& rdma) { rdma.devices.clear(); });
       }
     },
     {hidden(degraded, likely, kContainer)}},
    {"an ssh login is not the job's world",
     [](World& w) {
       in_docker(w);
       w.node(1).context = Context::ssh;
     },
     {hidden(notice, likely, kContainer)}},
    {"a job that may do without NCCL: a notice",
     [](World& w) {
       in_docker(w);
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {hidden(notice, likely, kContainer)}},
    {"near miss: shared, so that another reason hides it",
     [](World& w) {
       in_docker(w);
       change_rdma(w, 1, [](Rdma& rdma) { rdma.namespace_mode = "shared"; });
     },
     {},
     {},
     kShared},
    {"near miss: an Ethernet card that is no RDMA device anywhere",
     [](World& w) {
       roce_in_docker(w);
       change_pci(w, [](PciDevice& card) { card.device = 0x1015; });
     }},
    {"near miss: no driver is bound to the card",
     [](World& w) {
       in_docker(w);
       change_pci(w, [](PciDevice& card) { card.driver = ""; });
     }},
    {"near miss: NCCL_IB_DISABLE",
     [](World& w) {
       in_docker(w);
       set_and_predict(w, "NCCL_IB_DISABLE", "1");
     }},
    {"near miss: one node alone",
     [](World& w) {
       in_docker(w);
       w.cluster.nodes.erase(w.cluster.nodes.begin());
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"near miss: Gloo",
     [](World& w) {
       in_docker(w);
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"unseen cards are a gap",
     [](World& w) {
       in_docker(w);
       w.node(1).pci = Unknown{.kind = Why::denied, .text = "/sys: EACCES"};
     },
     {},
     {"node1 pci"}},
    {"unseen is a gap",
     [](World& w) {
       in_docker(w);
       w.node(1).rdma = Unknown{.kind = Why::denied, .text = "/sys: EACCES"};
     },
     {},
     {"node1 rdma"},
     kShared},
};

TEST_CASE("rdma/device_namespace") {
  run_cases("rdma/device_namespace", cases);
}

}  // namespace
}  // namespace distdoctor::testing
