// Whole machines, as their sysfs shows them, through collector, prediction, checks and ranking.
#include "support/rdma_machines.h"

#include "collect/collectors.h"
#include "diagnose/diagnose.h"
#include "machine/machine.h"
#include "rules/predict.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

using machine::CapturedMachine;
using Change = std::function<void(CapturedMachine&)>;

// Those of the machine beside those of the healthy node.
void add_links(machine::Machine& there, NodeFacts& node) {
  NodeFacts seen;
  collect::collect_links(there, {}, seen);
  if (!seen.links.known()) return;
  std::vector<Link> links = *node.links;
  links.insert(links.end(), seen.links->begin(), seen.links->end());
  node.links = links;
}

// The healthy cluster of two nodes, with the devices of these machines.
ClusterFacts cluster_of(const std::vector<CapturedMachine>& machines) {
  ClusterFacts cluster = healthy_cluster(machines.size());
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const auto there = machine::Machine::captured(machines[i]);
    collect::collect_rdma(*there, {}, cluster.nodes[i]);
    collect::collect_devices(*there, {}, cluster.nodes[i]);
    add_links(*there, cluster.nodes[i]);
    cluster.nodes[i].kernel_log = KernelLog{};
  }
  return cluster;
}

void set(ClusterFacts& cluster, const std::string& name, const std::string& value) {
  cluster.job.settings[name] = {value, {.source = Source::option, .where = "--env"}};
}

// The codes of the causes, in their order.
std::vector<std::string> codes(ClusterFacts cluster) {
  cluster.predicted = rules::predict(cluster);
  const auto diagnosis = diagnose::diagnose(cluster, {}, {});
  std::vector<std::string> all;
  for (const Cause& cause : diagnosis.causes) all.push_back(cause.finding.code);
  return all;
}

std::vector<std::string> codes_of(const std::vector<CapturedMachine>& machines) {
  return codes(cluster_of(machines));
}

ClusterFacts with_aws_plugin(ClusterFacts cluster) {
  for (NodeFacts& node : cluster.nodes) {
    Software software = *node.software;
    software.plugins = {{.path = "/opt/amazon/ofi-nccl/lib/libnccl-net.so", .kind = "net"}};
    node.software = software;
  }
  return cluster;
}

void put(CapturedMachine& machine, const std::string& path, const std::string& text) {
  machine.files[path].text = text + "\n";
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_CASE("RDMA machines: nothing is wrong with healthy ones") {
  CHECK(codes_of({h100_with_infiniband(), h100_with_infiniband()}) == Codes{});
  CHECK(codes_of({a100_with_roce(10), a100_with_roce(11)}) == Codes{});
  CHECK(codes_of({vm_with_soft_roce(10), vm_with_soft_roce(11)}) == Codes{});
  CHECK(codes(with_aws_plugin(cluster_of({vm_with_efa(), vm_with_efa()}))) == Codes{});
}

TEST_CASE("RDMA machines: a container without devices beside the host") {
  ClusterFacts cluster = cluster_of({h100_with_infiniband(), container_without_devices()});
  cluster.nodes[1].context = Context::container;
  Identity identity = *cluster.nodes[1].identity;
  identity.container = "docker";
  cluster.nodes[1].identity = identity;
  REQUIRE_FALSE(codes(cluster).empty());
  CHECK(codes(cluster).front() == "rdma-no-userland-device");
}

TEST_CASE("RDMA machines: one fault each, and its code comes first") {
  struct Fault {
    std::string code;
    Change change;  // of the second H100 node
  };
  const std::string port = "/sys/class/infiniband/mlx5_4/ports/1/";
  const std::vector<Fault> faults = {
      {"rdma-port-down",
       [&](CapturedMachine& machine) {
         put(machine, port + "state", "1: DOWN");
         put(machine, port + "phys_state", "2: Polling");
       }},
      {"rdma-port-init",
       [&](CapturedMachine& machine) {
         put(machine, port + "state", "2: INIT");
         put(machine, port + "sm_lid", "0x0");
       }},
      {"rdma-hca-sets-differ",
       [&](CapturedMachine& machine) { put(machine, port + "rate", "200 Gb/sec (4X HDR)"); }},
      {"rdma-no-userland-device",
       [](CapturedMachine& machine) {
         std::erase_if(machine.files, [](const auto& file) {
           return file.first.find("mlx5-rdmav") != file.first.npos ||
                  file.first.ends_with("mlx5.driver");
         });
       }},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.code);
    CapturedMachine second = h100_with_infiniband();
    fault.change(second);
    const auto found = codes_of({h100_with_infiniband(), second});
    REQUIRE_FALSE(found.empty());
    CHECK(found.front() == fault.code);
  }
}

TEST_CASE("RDMA machines: storage ports that are up are a remark at most") {
  CapturedMachine machine = h100_with_infiniband();
  for (const char* name : {"mlx5_1", "mlx5_7"}) {
    const std::string port = std::string("/sys/class/infiniband/") + name + "/ports/1/";
    put(machine, port + "state", "4: ACTIVE");
    put(machine, port + "rate", "100 Gb/sec (4X EDR)");
  }
  ClusterFacts cluster = cluster_of({machine, machine});
  CHECK(codes(cluster) == Codes{"rdma-hca-management", "rdma-hca-management"});
  set(cluster, "NCCL_IB_HCA", "=mlx5_0,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_9,mlx5_10,mlx5_11");
  CHECK(codes(cluster) == Codes{});
}

TEST_CASE("RDMA machines: lossless RoCE, and what may be wrong with it") {
  struct Fault {
    std::string name;
    Change change;
    bool on_both = false;
    Codes expected = {};
  };
  const auto each_link = [](CapturedMachine& machine, const std::string& file,
                            const std::string& text) {
    for (int i = 0; i < 8; ++i)
      put(machine, "/sys/class/net/rdma" + std::to_string(i) + file, text);
  };
  const auto force = [](CapturedMachine& machine, const std::string& text) {
    for (int i = 0; i < 8; ++i) {
      put(machine, "/sys/class/infiniband/mlx5_" + std::to_string(i) + "/tc/1/traffic_class", text);
    }
  };
  const std::vector<Fault> faults = {
      {"flow control is off on one",
       [](CapturedMachine& machine) {
         for (auto& [name, qos] : machine.qos) qos.pause = 0;
       },
       false,
       {"rdma-qos-differs"}},
      {"one does not slow down",
       [&](CapturedMachine& machine) { each_link(machine, "/ecn/roce_rp/enable/3", "0"); },
       false,
       {"rdma-qos-differs"}},
      {"one goes by tags",
       [&](CapturedMachine& machine) { each_link(machine, "/qos/trust", "pcp"); },
       false,
       {"rdma-qos-differs", "rdma-traffic-class-unheeded"}},
      {"both go by tags",
       [&](CapturedMachine& machine) { each_link(machine, "/qos/trust", "pcp"); },
       true,
       {"rdma-traffic-class-unheeded"}},
      {"nobody sets the class",
       [&](CapturedMachine& machine) { force(machine, ""); },
       true,
       {"rdma-traffic-class-lossy"}},
      {"healthy: lossy by design",
       [&](CapturedMachine& machine) {
         force(machine, "");
         for (auto& [name, qos] : machine.qos) qos.pause = 0;
       },
       true},
      {"healthy: a driver that tells nothing",
       [](CapturedMachine& machine) {
         machine.qos.clear();
         std::erase_if(machine.files, [](const auto& file) {
           return file.first.find("/ecn/") != file.first.npos ||
                  file.first.find("/qos/") != file.first.npos ||
                  file.first.find("/tc/") != file.first.npos;
         });
       }},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.name);
    std::vector machines = {a100_with_roce(10), a100_with_roce(11)};
    fault.change(machines[1]);
    if (fault.on_both) fault.change(machines[0]);
    CHECK(codes_of(machines) == fault.expected);
  }
}

TEST_CASE("RDMA machines: what may be wrong with EFA") {
  const CapturedMachine healthy = vm_with_efa();
  CHECK(codes_of({healthy, healthy}) ==
        Codes{"software-efa-not-usable", "software-efa-not-usable"});
  auto second = healthy;
  std::erase_if(second.files,
                [](const auto& file) { return file.first.starts_with("/dev/infiniband/"); });
  CHECK(codes(with_aws_plugin(cluster_of({healthy, second}))) == Codes{"software-efa-not-usable"});
}

TEST_CASE("RDMA machines: settings") {
  ClusterFacts infiniband = cluster_of({h100_with_infiniband(), h100_with_infiniband()});
  set(infiniband, "NCCL_IB_HCA", "ib0");
  CHECK(codes(infiniband).front() == "rdma-hca-no-match");
  ClusterFacts disabled = cluster_of({h100_with_infiniband(), h100_with_infiniband()});
  set(disabled, "NCCL_IB_DISABLE", "1");
  CHECK(codes(disabled).front() == "rdma-socket-fallback");
  ClusterFacts roce = cluster_of({a100_with_roce(10), a100_with_roce(11)});
  set(roce, "NCCL_IB_GID_INDEX", "1");
  CHECK(codes(roce).front() == "rdma-gid");
}
