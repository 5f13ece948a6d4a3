#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// NCCL_IB_HCA of node1 alone.
void own_list(World& w, const std::string& value) {
  give_infiniband(w);
  w.prediction(1).settings["NCCL_IB_HCA"] = {
      value, {.source = Source::user_config, .where = "/users/ann/.nccl.conf:3"}};
  predict_hcas(w);
}

const std::string kLook = "; grep -n NCCL_IB_HCA /users/ann/.nccl.conf; ls /sys/class/infiniband";

Verdict no_match(const std::string& value, const std::string& fix) {
  return {
      .code = "rdma-hca-no-match",
      .severity = blocker,
      .certainty = proved,
      .symptom = Symptom::hang,
      .says = "NCCL_IB_HCA=" + value + " matches no port of node1, which has mlx5_0:1, mlx5_1:1",
      .blamed = {"node1"},
      .evidence = {"node1 NCCL_IB_HCA: " + value +
                   " (/users/ann/.nccl.conf:3), not one of mlx5_0:1, mlx5_1:1" + kLook},
      .fixes = {fix}};
}

Verdict everywhere(const std::string& node, const std::string& fix = "*: NCCL_IB_HCA unset") {
  Verdict verdict = no_match("mlx4", fix);
  verdict.severity = degraded;
  verdict.symptom = Symptom::slow;
  verdict.says = "matches no port of " + node;
  verdict.blamed = {node};
  verdict.evidence = {node +
                      " NCCL_IB_HCA: mlx4 (--env), not one of mlx5_0:1, mlx5_1:1; printenv "
                      "NCCL_IB_HCA; ls /sys/class/infiniband"};
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: unset", give_infiniband, {}, {}, "NCCL_IB_HCA is not set"},
    {"healthy: a prefix", [](World& w) { own_list(w, "mlx5"); }},
    {"names of another machine",
     [](World& w) { own_list(w, "mlx4_0"); },
     {no_match("mlx4_0", "node1: NCCL_IB_HCA unset")}},
    {"a port number that is none",
     [](World& w) { own_list(w, "=mlx5_0:,mlx5_1:"); },
     {no_match("=mlx5_0:,mlx5_1:", "node1: NCCL_IB_HCA==mlx5_0,mlx5_1")}},
    {"blanks and quotes belong to the name",
     [](World& w) { own_list(w, "\"mlx5_0, mlx5_1\""); },
     {no_match("\"mlx5_0, mlx5_1\"", "node1: NCCL_IB_HCA=mlx5_0,mlx5_1")}},
    {"a port that the device has not",
     [](World& w) { own_list(w, "mlx5_0:2"); },
     {no_match("mlx5_0:2", "node1: NCCL_IB_HCA unset")}},
    {"all are excluded",
     [](World& w) { own_list(w, "^mlx5"); },
     {no_match("^mlx5", "node1: NCCL_IB_HCA unset")}},
    {"on no node: then all are slow",
     [](World& w) {
       give_infiniband(w);
       set_and_predict(w, "NCCL_IB_HCA", "mlx4");
     },
     {everywhere("node0"), everywhere("node1"), everywhere("node2"), everywhere("node3")}},
    {"on no node, and what is there is named otherwise on one: each node its own",
     [](World& w) {
       give_infiniband(w);
       w.cluster.nodes.resize(2);
       w.cluster.predicted.nodes.resize(2);
       for (const std::size_t i : {0U, 1U}) {
         change_rdma(w, i, [i](Rdma& rdma) { rdma.devices[1].name = i == 0 ? "mlx5_1" : "ib1"; });
       }
       set_and_predict(w, "NCCL_IB_HCA", "=ib1:");
     },
     {[] {
        Verdict verdict = everywhere("node0", "node0: NCCL_IB_HCA unset");
        verdict.evidence = {
            "node0 NCCL_IB_HCA: =ib1: (--env), not one of mlx5_0:1, mlx5_1:1; "
            "printenv NCCL_IB_HCA; ls /sys/class/infiniband"};
        return verdict;
      }(),
      [] {
        Verdict verdict = everywhere("node1", "node1: NCCL_IB_HCA==ib1");
        verdict.evidence = {
            "node1 NCCL_IB_HCA: =ib1: (--env), not one of mlx5_0:1, ib1:1; "
            "printenv NCCL_IB_HCA; ls /sys/class/infiniband"};
        return verdict;
      }()}},
    {"near miss: one node alone needs no network",
     [](World& w) {
       own_list(w, "mlx4_0");
       w.cluster.nodes.erase(w.cluster.nodes.begin());
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"near miss: one element matches", [](World& w) { own_list(w, "mlx4_0,mlx5_1"); }},
    {"near miss: NCCL_IB_DISABLE counts first",
     [](World& w) {
       own_list(w, "mlx4_0");
       set_and_predict(w, "NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "NCCL is kept from RDMA"},
    {"near miss: no port is active",
     [](World& w) {
       own_list(w, "mlx4_0");
       for (const char* name : {"mlx5_0", "mlx5_1"}) {
         change_hca(w, 1, name, [](RdmaDevice&, RdmaPort& port) { port.state = "DOWN"; });
       }
     }},
    {"near miss: Gloo",
     [](World& w) {
       own_list(w, "mlx4_0");
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"unseen is a gap",
     [](World& w) {
       own_list(w, "mlx4_0");
       w.prediction(1).hcas = Unknown{.text = "NCCL_IB_HCA is set to $(x)"};
     },
     {},
     {"node1 nccl.hcas"},
     "NCCL_IB_HCA is not set"},
};

TEST_CASE("rdma/hca_no_match") {
  run_cases("rdma/hca_no_match", cases);
}

}  // namespace
}  // namespace distdoctor::testing
