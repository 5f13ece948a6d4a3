#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// node0 and node1, each with mlx5_0 alone: fe80 v1, fe80 v2, 192.168.0.1x v1, and that v2.
void two_ports(World& w) {
  give_roce(w);
  w.cluster.nodes.resize(2);
  w.cluster.predicted.nodes.resize(2);
  for (const std::size_t i : {0U, 1U}) {
    change_rdma(w, i, [](Rdma& rdma) { rdma.devices.resize(1); });
  }
}
void set_index(World& w, const std::string& index) {
  two_ports(w);
  set_and_predict(w, "NCCL_IB_GID_INDEX", index);
}
void without_address(World& w) {
  two_ports(w);
  change_hca(w, 1, "mlx5_0", [](RdmaDevice&, RdmaPort& port) { port.gids.resize(2); });
}
void set_version(World& w, const std::string& version) {
  for (const std::size_t i : {0U, 1U}) {
    World::change(w.node(i).nccl_library, [&](NcclLibrary& nccl) { nccl.version = version; });
    World::change(w.prediction(i).nccl, [](NcclChoice& nccl) { nccl.rules = NcclRules::to_2_22; });
  }
  predict_hcas(w);
}

std::string local(const std::string& node) {
  return "fe80:0000:0000:0000:0ac0:ebff:feda:000" + node.substr(4);
}
std::string mapped(const std::string& node) {
  return "0000:0000:0000:0000:0000:ffff:c0a8:000" + std::string(node == "node0" ? "a" : "b");
}
const std::string kLook =
    "; grep -r . /sys/class/infiniband/mlx5_0/ports/1/gids; printenv NCCL_IB_GID_INDEX";

Verdict wrong(Severity severity,
              Certainty certainty,
              const std::string& node,
              const std::string& has,
              const std::string& wants,
              const std::string& fix) {
  return {.code = "rdma-gid",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::crash,
          .says = "mlx5_0:1 of " + node + " uses the GID at index " + has,
          .blamed = {node},
          .evidence = {node + " rdma.mlx5_0:1.gid: index " + has + ", not " + wants + kLook},
          .fixes = {fix}};
}

std::vector<Verdict> link_local(const std::string& fix, const std::string& index = "1") {
  std::vector<Verdict> verdicts;
  for (const std::string node : {"node0", "node1"}) {
    verdicts.push_back(
        wrong(degraded, likely, node,
              index + ": " + local(node) + (index == "1" ? ", RoCE v2" : ", IB/RoCE v1"),
              "index 3: " + mapped(node) + ", RoCE v2", fix));
  }
  return verdicts;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: NCCL finds RoCE v2 with IPv4", two_ports},
    {"healthy: NCCL_IB_GID_INDEX=3", [](World& w) { set_index(w, "3"); }},
    {"healthy: InfiniBand has no such choice", give_infiniband},
    {"a link-local GID by index", [](World& w) { set_index(w, "1"); },
     link_local("*: NCCL_IB_GID_INDEX unset")},
    {"the first GID, which old versions take",
     [](World& w) {
       two_ports(w);
       set_version(w, "2.20.5");
     },
     link_local("*: NCCL_IB_GID_INDEX=3", "0")},
    {"RoCE v1 by index may work in one subnet: a notice",
     [](World& w) { set_index(w, "2"); },
     {wrong(notice,
            possible,
            "node0",
            "2: " + mapped("node0") + ", IB/RoCE v1",
            "index 3: " + mapped("node0") + ", RoCE v2",
            "*: NCCL_IB_GID_INDEX unset"),
      wrong(notice,
            possible,
            "node1",
            "2: " + mapped("node1") + ", IB/RoCE v1",
            "index 3: " + mapped("node1") + ", RoCE v2",
            "*: NCCL_IB_GID_INDEX unset")}},
    {"an empty place",
     [](World& w) {
       set_index(w, "3");
       change_hca(w, 1, "mlx5_0", [](RdmaDevice&, RdmaPort& port) { port.gids.resize(2); });
     },
     {wrong(blocker, proved, "node1", "3: none", "a GID", "node1: (manual)")}},
    {"one port without an address",
     without_address,
     {wrong(blocker,
            likely,
            "node1",
            "0: " + local("node1") + ", IB/RoCE v1",
            "RoCE v2 with an IPv4 address",
            "node1: (manual)")}},
    {"the index means something else on one node",
     [](World& w) {
       set_index(w, "3");
       change_hca(w, 1, "mlx5_0", [](RdmaDevice&, RdmaPort& port) {
         for (Gid& gid : port.gids) gid.type = gid.index % 2 == 0 ? "RoCE v2" : "IB/RoCE v1";
       });
     },
     {wrong(blocker,
            likely,
            "node1",
            "3: " + mapped("node1") + ", IB/RoCE v1",
            "RoCE v2 with an IPv4 address",
            "*: NCCL_IB_GID_INDEX unset")}},
    {"near miss: indices differ, as NCCL finds them",
     [](World& w) {
       two_ports(w);
       change_hca(w, 1, "mlx5_0", [](RdmaDevice&, RdmaPort& port) {
         port.gids.erase(port.gids.begin() + 2);
         port.gids.back().index = 5;
       });
     }},
    {"near miss: nobody has addresses there, perhaps nobody needs them",
     [](World& w) {
       two_ports(w);
       for (const std::size_t i : {0U, 1U}) {
         change_hca(w, i, "mlx5_0", [](RdmaDevice&, RdmaPort& port) { port.gids.resize(2); });
       }
     }},
    {"near miss: NCCL_IB_HCA leaves the port out",
     [](World& w) {
       without_address(w);
       set_and_predict(w, "NCCL_IB_HCA", "^mlx5_0");
     }},
    {"near miss: Gloo",
     [](World& w) {
       without_address(w);
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       without_address(w);
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {wrong(notice,
            likely,
            "node1",
            "0: " + local("node1") + ", IB/RoCE v1",
            "RoCE v2 with an IPv4 address",
            "node1: (manual)")}},
    {"unseen is a gap",
     [](World& w) {
       two_ports(w);
       w.node(1).rdma = Unknown{.kind = Why::denied, .text = "/sys: EACCES"};
     },
     {},
     {"node1 rdma"}},
};

TEST_CASE("rdma/gid") {
  run_cases("rdma/gid", cases);
}

}  // namespace
}  // namespace distdoctor::testing
