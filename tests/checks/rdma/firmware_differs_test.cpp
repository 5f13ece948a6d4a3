#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// One model in all nodes, with two cards each.
void give_cards(World& w) {
  give_infiniband(w);
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    change_rdma(w, i, [](Rdma& rdma) {
      for (RdmaDevice& device : rdma.devices) device.board = "MT_0000000838";
    });
  }
}
void flash(World& w, std::size_t node, const std::string& name, const std::string& firmware) {
  change_hca(w, node, name, [&](RdmaDevice& device, RdmaPort&) { device.firmware = firmware; });
}

std::string row(const std::string& node,
                const std::string& device,
                const std::string& seen,
                const std::string& expected) {
  return node + " rdma." + device + ".firmware: " + seen + ", not " + expected +
         "; cat /sys/class/infiniband/" + device + "/fw_ver";
}

const std::vector<CheckCase> cases = {
    {"healthy", give_cards},
    {"healthy: no RDMA", [](World&) {}, {}, {}},
    {"a card of one node, and both of another",
     [](World& w) {
       give_cards(w);
       flash(w, 1, "mlx5_1", "28.40.1000");
       flash(w, 3, "mlx5_0", "28.40.1000");
       flash(w, 3, "mlx5_1", "28.40.1000");
     },
     {{.code = "rdma-firmware-differs",
       .severity = notice,
       .certainty = possible,
       .symptom = Symptom::slow,
       .says = "3 of 8 cards of board MT_0000000838 in use have other firmware than 28.39.1002: on "
               "node1, node3",
       .blamed = {"node1", "node3"},
       .evidence = {row("node1", "mlx5_1", "28.40.1000", "28.39.1002"),
                    row("node3", "mlx5_0", "28.40.1000", "28.39.1002")},
       .fixes = {"*: (manual)"}}}},
    {"of two nodes neither is the odd one",
     [](World& w) {
       give_cards(w);
       w.cluster.nodes.resize(2);
       for (const char* name : {"mlx5_0", "mlx5_1"}) flash(w, 1, name, "28.40.1000");
     },
     {{.code = "rdma-firmware-differs",
       .severity = notice,
       .certainty = possible,
       .symptom = Symptom::slow,
       .says = "2 of 4 cards of board MT_0000000838 in use have other firmware than 28.40.1000",
       .blamed = {"node0", "node1"},
       .evidence = {row("node0", "mlx5_0", "28.39.1002", "28.40.1000"),
                    row("node1", "mlx5_0", "28.40.1000", "28.39.1002")},
       .fixes = {"*: (manual)"}}}},
    {"near miss: another board",
     [](World& w) {
       give_cards(w);
       change_hca(w, 1, "mlx5_1", [](RdmaDevice& device, RdmaPort&) {
         device.board = "MT_0000000970";
         device.firmware = "28.40.1000";
       });
     }},
    {"near miss: the kernel tells neither firmware nor board",
     [](World& w) {
       give_cards(w);
       flash(w, 1, "mlx5_1", "");
       change_hca(w, 2, "mlx5_1", [](RdmaDevice& device, RdmaPort&) {
         device.board = "";
         device.firmware = "28.40.1000";
       });
     }},
    {"near miss: NCCL_IB_HCA leaves the card out",
     [](World& w) {
       give_cards(w);
       flash(w, 1, "mlx5_1", "28.40.1000");
       set_and_predict(w, "NCCL_IB_HCA", "=mlx5_0");
     }},
    {"near miss: one node alone",
     [](World& w) {
       give_cards(w);
       flash(w, 0, "mlx5_1", "28.40.1000");
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"near miss: Gloo",
     [](World& w) {
       give_cards(w);
       flash(w, 1, "mlx5_1", "28.40.1000");
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"devices that could not be read are a gap",
     [](World& w) {
       give_cards(w);
       w.node(2).rdma = Unknown{.kind = Why::denied, .text = "sysfs: EACCES"};
     },
     {},
     {"node2 rdma"}},
};

TEST_CASE("rdma/firmware_differs") {
  run_cases("rdma/firmware_differs", cases);
}

}  // namespace
}  // namespace distdoctor::testing
