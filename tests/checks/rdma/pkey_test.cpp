#include "support/check_cases.h"
#include "support/hcas.h"

#include <cstdint>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void set_keys(World& w, std::size_t node, const std::vector<std::uint16_t>& keys) {
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    change_hca(w, node, name, [&](RdmaDevice&, RdmaPort& port) {
      port.pkeys.clear();
      for (const std::uint16_t key : keys) {
        port.pkeys.push_back({.index = static_cast<int>(port.pkeys.size()), .key = key});
      }
    });
  }
}

Verdict apart(const std::string& node,
              const std::string& theirs,
              const std::string& full = "",
              const std::string& usual = "0xffff",
              const std::string& index = "0") {
  const std::string look = "; cat /sys/class/infiniband/mlx5_0/ports/1/pkeys/" + index;
  return {.code = "rdma-pkey-mismatch",
          .severity = blocker,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = node + " is in partition " + theirs + ", node0 in " + usual,
          .blamed = {node},
          .evidence = {node + " rdma.pkeys[" + index + "]: " + theirs +
                           ", not a partition of node0 (" + usual + ")" + full + look,
                       "node0 rdma.pkeys[" + index + "]: " + usual + ", not a partition of " +
                           node + " (" + theirs + ")" + full + look},
          .fixes = {node + ": (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: the default partition", give_infiniband},
    {"another partition",
     [](World& w) {
       give_infiniband(w);
       set_keys(w, 2, {0x8001});
     },
     {apart("node2", "0x8001")}},
    {"limited members do not talk to each other",
     [](World& w) {
       give_infiniband(w);
       for (const std::size_t i : {0U, 1U}) set_keys(w, i, {0x7fff});
       w.cluster.nodes.resize(2);
     },
     {apart("node1", "0x7fff", " with bit 0x8000", "0x7fff")}},
    {"NCCL_IB_PKEY is an index",
     [](World& w) {
       give_infiniband(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) set_keys(w, i, {0xffff, 0x8002});
       set_keys(w, 2, {0xffff, 0x8003});
       set_and_predict(w, "NCCL_IB_PKEY", "1");
     },
     {apart("node2", "0x8003", "", "0x8002", "1")}},
    {"near miss: a limited member and full ones",
     [](World& w) {
       give_infiniband(w);
       set_keys(w, 2, {0x7fff});
     }},
    {"near miss: another key further down",
     [](World& w) {
       give_infiniband(w);
       set_keys(w, 2, {0xffff, 0x8001});
     }},
    {"near miss: a table that was not seen",
     [](World& w) {
       give_infiniband(w);
       set_keys(w, 2, {});
     }},
    {"near miss: RoCE has no partitions",
     [](World& w) {
       give_roce(w);
       set_keys(w, 2, {0x8001});
     }},
    {"near miss: an index that is no number",
     [](World& w) {
       give_infiniband(w);
       set_keys(w, 2, {0x8001});
       set_and_predict(w, "NCCL_IB_PKEY", "0x1");
     }},
    {"unseen is a gap",
     [](World& w) {
       give_infiniband(w);
       w.node(1).rdma = Unknown{.kind = Why::denied, .text = "/sys: EACCES"};
     },
     {},
     {"node1 rdma"}},
};

TEST_CASE("rdma/pkey") {
  run_cases("rdma/pkey", cases);
}

}  // namespace
}  // namespace distdoctor::testing
