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

// What an RC connection between these ports over these GIDs showed.
RdmaPath path_over(int index, const std::string& gid0, const std::string& gid1) {
  return {.from = "node0",
          .to = "node1",
          .from_device = "mlx5_0",
          .to_device = "mlx5_0",
          .roce = true,
          .from_gid_index = index,
          .to_gid_index = index,
          .from_gid = gid0,
          .to_gid = gid1,
          .messages = {{.bytes = 64, .arrived = true}}};
}
RdmaPath lost(RdmaPath path) {
  path.messages = {{.bytes = 64, .status = "transport retry counter exceeded", .status_code = 12}};
  return path;
}
RdmaPath local_path() {
  return path_over(1, local("node0"), local("node1"));
}

std::vector<Verdict> link_local(const std::string& fix,
                                const std::string& index = "1",
                                Severity severity = notice) {
  std::vector<Verdict> verdicts;
  for (const std::string node : {"node0", "node1"}) {
    verdicts.push_back(
        wrong(severity, severity == notice ? possible : likely, node,
              index + ": " + local(node) + (index == "1" ? ", RoCE v2" : ", IB/RoCE v1"),
              "index 3: " + mapped(node) + ", RoCE v2", fix));
  }
  return verdicts;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: NCCL finds RoCE v2 with IPv4", two_ports},
    {"healthy: NCCL_IB_GID_INDEX=3", [](World& w) { set_index(w, "3"); }},
    {"healthy: InfiniBand has no such choice", give_infiniband, {}, {}, "no RoCE port is in use"},
    {"link-local GIDs by index, which nobody tried: a notice", [](World& w) { set_index(w, "1"); },
     link_local("*: NCCL_IB_GID_INDEX unset")},
    {"link-local GIDs over which nothing passes",
     [](World& w) {
       set_index(w, "1");
       w.cluster.rdma_paths = {lost(local_path())};
     },
     link_local("*: NCCL_IB_GID_INDEX unset", "1", degraded)},
    {"link-local GIDs: of two tries the last one counts",
     [](World& w) {
       set_index(w, "1");
       w.cluster.rdma_paths = {local_path(), lost(local_path())};
     },
     link_local("*: NCCL_IB_GID_INDEX unset", "1", degraded)},
    {"healthy: messages pass over link-local GIDs",
     [](World& w) {
       set_index(w, "1");
       w.cluster.rdma_paths = {lost(local_path()), local_path()};
     }},
    {"healthy: messages pass over the first GID, which old versions take",
     [](World& w) {
       two_ports(w);
       set_version(w, "2.20.5");
       w.cluster.rdma_paths = {path_over(0, local("node0"), local("node1"))};
     }},
    {"messages that passed over other GIDs tell nothing",
     [](World& w) {
       set_index(w, "1");
       w.cluster.rdma_paths = {path_over(3, mapped("node0"), mapped("node1"))};
     },
     link_local("*: NCCL_IB_GID_INDEX unset")},
    {"an end that could not be opened tells nothing",
     [](World& w) {
       set_index(w, "1");
       RdmaPath path = local_path();
       path.messages.clear();
       path.error = "ibv_reg_mr: ENOMEM";
       path.failed_at = "node1";
       w.cluster.rdma_paths = {path};
     },
     link_local("*: NCCL_IB_GID_INDEX unset")},
    {"a link-local GID whose partner, of another name, has an address: it cannot meet it",
     [](World& w) {
       set_index(w, "1");
       change_rdma(w, 1, [](Rdma& rdma) {
         rdma.devices[0].name = "mlx5_9";
         rdma.devices[0].ports[0].gids[1] = rdma.devices[0].ports[0].gids[3];
         rdma.devices[0].ports[0].gids[1].index = 1;
       });
     },
     {wrong(degraded,
            likely,
            "node0",
            "1: " + local("node0") + ", RoCE v2",
            "index 3: " + mapped("node0") + ", RoCE v2",
            "*: NCCL_IB_GID_INDEX unset")}},
    {"other names, and link-local ones on both sides: a notice",
     [](World& w) {
       set_index(w, "1");
       change_rdma(w, 1, [](Rdma& rdma) { rdma.devices[0].name = "mlx5_9"; });
     },
     {wrong(notice,
            possible,
            "node0",
            "1: " + local("node0") + ", RoCE v2",
            "index 3: " + mapped("node0") + ", RoCE v2",
            "*: NCCL_IB_GID_INDEX unset"),
      [] {
        Verdict verdict = wrong(notice, possible, "node1", "", "", "*: NCCL_IB_GID_INDEX unset");
        verdict.says = "mlx5_9:1 of node1 uses the GID";
        verdict.evidence = {
            "node1 rdma.mlx5_9:1.gid: index 1: " + local("node1") +
            ", RoCE v2, not index 3: " + mapped("node1") +
            ", RoCE v2; grep -r . /sys/class/infiniband/mlx5_9/ports/1/gids; printenv "
            "NCCL_IB_GID_INDEX"};
        return verdict;
      }()}},
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
    {"the first place, which old versions take, is empty",
     [](World& w) {
       two_ports(w);
       set_version(w, "2.20.5");
       change_hca(w, 1, "mlx5_0",
                  [](RdmaDevice&, RdmaPort& port) { port.gids.erase(port.gids.begin()); });
       w.cluster.rdma_paths = {path_over(0, local("node0"), "")};
     },
     {wrong(blocker, proved, "node1", "0: none", "a GID", "*: NCCL_IB_GID_INDEX=3")}},
    {"a table that was not seen is a gap, and no empty place",
     [](World& w) {
       set_index(w, "3");
       change_hca(w, 1, "mlx5_0", [](RdmaDevice&, RdmaPort& port) { port.gids.clear(); });
     },
     {},
     {"node1 rdma.mlx5_0:1.gids"}},
    {"near miss: other kinds of GIDs, over which messages pass",
     [](World& w) {
       without_address(w);
       w.cluster.rdma_paths = {path_over(3, mapped("node0"), local("node1"))};
       w.cluster.rdma_paths[0].to_gid_index = 0;
     }},
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
     },
     {},
     {},
     "NCCL uses no RDMA port"},
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
