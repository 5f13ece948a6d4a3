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

struct Side {
  std::string keys;
  std::string index = "0";
};

Verdict apart(const std::string& node,
              const Side& theirs,
              const std::string& full = "",
              const Side& usual = {"0xffff"}) {
  const std::string look = "; cat /sys/class/infiniband/mlx5_0/ports/1/pkeys/";
  return {.code = "rdma-pkey-mismatch",
          .severity = blocker,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = node + " is in partition " + theirs.keys + ", node0 in " + usual.keys,
          .blamed = {node},
          .evidence = {node + " rdma.pkeys[" + theirs.index + "]: " + theirs.keys +
                           ", not a partition of node0 (" + usual.keys + ")" + full + look +
                           theirs.index,
                       "node0 rdma.pkeys[" + usual.index + "]: " + usual.keys +
                           ", not a partition of " + node + " (" + theirs.keys + ")" + full + look +
                           usual.index},
          .fixes = {node + ": (manual)"}};
}

// Place 3 on every node, whose tables have one key each.
void empty_place(World& w) {
  give_infiniband(w);
  w.cluster.nodes.resize(2);
  w.cluster.predicted.nodes.resize(2);
  set_and_predict(w, "NCCL_IB_PKEY", "3");
}
Verdict empty(const std::string& node,
              const std::string& table = "0: 0xffff",
              const std::string& fix = "*: NCCL_IB_PKEY unset") {
  return {.code = "rdma-pkey-empty",
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::crash,
          .says =
              "NCCL_IB_PKEY=3 (--env) leads to place 3 of the partition tables, which is empty "
              "at mlx5_0:1, mlx5_1:1 of " +
              node,
          .blamed = {node},
          .evidence = {node + " rdma.mlx5_0:1.pkeys[3]: empty, not a partition; the table has " +
                       table +
                       "; grep . /sys/class/infiniband/mlx5_0/ports/1/pkeys/*; printenv "
                       "NCCL_IB_PKEY"},
          .fixes = {fix}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: the default partition", give_infiniband},
    {"another partition",
     [](World& w) {
       give_infiniband(w);
       set_keys(w, 2, {0x8001});
     },
     {apart("node2", {"0x8001"})}},
    {"limited members do not talk to each other",
     [](World& w) {
       give_infiniband(w);
       for (const std::size_t i : {0U, 1U}) set_keys(w, i, {0x7fff});
       w.cluster.nodes.resize(2);
     },
     {apart("node1", {"0x7fff"}, " with bit 0x8000", {"0x7fff"})}},
    {"NCCL_IB_PKEY is an index",
     [](World& w) {
       give_infiniband(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) set_keys(w, i, {0xffff, 0x8002});
       set_keys(w, 2, {0xffff, 0x8003});
       set_and_predict(w, "NCCL_IB_PKEY", "1");
     },
     {apart("node2", {"0x8003", "1"}, "", {"0x8002", "1"})}},
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
    {"each node has a place of its own",
     [](World& w) {
       give_infiniband(w);
       set_keys(w, 2, {0xffff, 0x8001, 0x8002});
       w.prediction(2).settings["NCCL_IB_PKEY"] = {"2", {.source = Source::option}};
     },
     {apart("node2", {"0x8002", "2"})}},
    {"an empty place: no NCCL connects", empty_place, {empty("node0"), empty("node1")}},
    {"an empty place on one node, and none that serves all",
     [](World& w) {
       empty_place(w);
       set_keys(w, 0, {0x8001, 0xffff, 0x8002, 0x8005});
       set_keys(w, 1, {0xffff, 0x8005});
     },
     {empty("node1", "0: 0xffff, 1: 0x8005", "*: (manual)")}},
    {"an empty place, and another that serves all",
     [](World& w) {
       empty_place(w);
       for (const std::size_t i : {0U, 1U}) set_keys(w, i, {0x7fff, 0x8005});
     },
     {empty("node0", "0: 0x7fff, 1: 0x8005", "*: NCCL_IB_PKEY=1"),
      empty("node1", "0: 0x7fff, 1: 0x8005", "*: NCCL_IB_PKEY=1")}},
    {"a place below 0 is none",
     [](World& w) {
       empty_place(w);
       set_keys(w, 1, {0xffff, 0xffff, 0xffff, 0xffff});
       w.prediction(1).settings["NCCL_IB_PKEY"].value = "3";
       w.prediction(0).settings["NCCL_IB_PKEY"].value = "-1";
     },
     {[] {
       Verdict verdict = empty("node0");
       verdict.says = "NCCL_IB_PKEY=-1 (--env) leads to place 65535";
       verdict.evidence = {
           "node0 rdma.mlx5_0:1.pkeys[65535]: empty, not a partition; the table has 0: 0xffff; "
           "grep . /sys/class/infiniband/mlx5_0/ports/1/pkeys/*; printenv NCCL_IB_PKEY"};
       return verdict;
     }()}},
    {"a job that may do without NCCL: a notice",
     [](World& w) {
       empty_place(w);
       set_keys(w, 0, {0xffff, 0xffff, 0xffff, 0xffff});
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {[] {
       Verdict verdict = empty("node1");
       verdict.severity = notice;
       return verdict;
     }()}},
    {"further than the table was read: a gap",
     [](World& w) {
       empty_place(w);
       set_and_predict(w, "NCCL_IB_PKEY", "9");
     },
     {},
     {"node0 rdma.mlx5_0:1.pkeys[9]", "node0 rdma.mlx5_1:1.pkeys[9]",
      "node1 rdma.mlx5_0:1.pkeys[9]", "node1 rdma.mlx5_1:1.pkeys[9]"}},
    {"a table that was not seen is a gap",
     [](World& w) {
       give_infiniband(w);
       set_keys(w, 2, {});
     },
     {},
     {"node2 rdma.mlx5_0:1.pkeys", "node2 rdma.mlx5_1:1.pkeys"}},
    {"near miss: RoCE has no partitions",
     [](World& w) {
       give_roce(w);
       set_keys(w, 2, {0x8001});
       set_and_predict(w, "NCCL_IB_PKEY", "3");
     },
     {},
     {},
     "no InfiniBand port is in use"},
    {"numbers as NCCL reads them: 0x1 is 1",
     [](World& w) {
       give_infiniband(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) set_keys(w, i, {0xffff, 0x8002});
       set_keys(w, 2, {0xffff, 0x8003});
       set_and_predict(w, "NCCL_IB_PKEY", "0x1");
     },
     {apart("node2", {"0x8003", "1"}, "", {"0x8002", "1"})}},
    {"near miss: one node alone",
     [](World& w) {
       empty_place(w);
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"near miss: NCCL is kept from RDMA",
     [](World& w) {
       empty_place(w);
       set_and_predict(w, "NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "NCCL uses no RDMA port"},
    {"near miss: Gloo",
     [](World& w) {
       empty_place(w);
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
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
