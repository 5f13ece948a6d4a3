// Containers as captured machines, from their files to what all checks say.
#include "support/container_machines.h"

#include "collect/collectors.h"
#include "support/check_cases.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

using Cluster = distdoctor::testing::World;
using machine::CapturedMachine;
using Codes = std::set<std::string>;

void look(const CapturedMachine& captured, NodeFacts& node) {
  const auto machine = machine::Machine::captured(captured);
  const auto boot = node.identity->boot_id;
  collect_identity(*machine, {}, node);
  Cluster::change(node.identity, [&](Identity& identity) {
    identity.hostname = node.host;
    identity.boot_id = boot;
  });
  collect_shm(*machine, {}, node);
  collect_limits(*machine, {}, node);
  collect_world(*machine, {}, node);
  if (node.context != Context::slurm_step) node.context = Context::container;
}

Cluster cluster_of(const CapturedMachine& captured) {
  Cluster cluster;
  cluster.cluster.job.ranks_per_node = 1;
  for (std::size_t i = 0; i < cluster.cluster.nodes.size(); ++i) {
    look(captured, cluster.node(i));
  }
  return cluster;
}

Codes codes_of(const Cluster& cluster, Severity at_least) {
  Codes codes;
  for (const NamedCheck& named : all_checks()) {
    Judge judge(named.check->codes);
    named.check->run({.cluster = cluster.cluster, .expect = cluster.expect}, judge);
    for (const Finding& finding : judge.findings()) {
      if (finding.severity >= at_least) codes.insert(finding.code);
    }
  }
  return codes;
}

struct Healthy {
  std::string_view name;
  CapturedMachine (*machine)();
  std::string_view container;
};

const std::vector<Healthy> kHealthy = {
    {"docker", fake_docker_default, "docker"},
    {"docker with control groups of version 1", fake_docker_v1, "docker"},
    {"a pod", fake_pod, "kubernetes"},
    {"podman without root", fake_podman_rootless, "podman"},
    {"apptainer", fake_apptainer, "apptainer"},
    {"enroot", fake_enroot, "enroot"},
    {"WSL", fake_wsl_distribution, ""},
};

struct Ill {
  std::string_view name;
  CapturedMachine (*machine)();
  void (*hurt)(CapturedMachine&);
  void (*job)(Cluster&);
  Codes codes;
};

void same(CapturedMachine& /*captured*/) {}
void plain(Cluster& /*cluster*/) {}

const std::vector<Ill> kIll = {
    {"two ranks in docker's default /dev/shm",
     fake_docker_default,
     same,
     [](Cluster& c) { c.cluster.job.ranks_per_node = 2; },
     {"host-shm-small"}},
    {"a pod without an emptyDir at /dev/shm",
     fake_pod,
     [](CapturedMachine& m) { set_shm(m, std::int64_t{64} << 20); },
     [](Cluster& c) { c.cluster.job.ranks_per_node = 8; },
     {"host-shm-small"}},
    {"a pod at its memory limit",
     fake_pod,
     [](CapturedMachine& m) {
       m.files["/sys/fs/cgroup/memory.current"].text = std::to_string(std::int64_t{64} << 30);
       m.files["/sys/fs/cgroup/memory.stat"].text = "file 0\nshmem 0\n";
       m.files["/sys/fs/cgroup/memory.events"].text = "oom 3\noom_kill 3\n";
     },
     plain,
     {"host-memory-limit"}},
    {"no thread left in podman's 2048",
     fake_podman_rootless,
     [](CapturedMachine& m) { m.files["/sys/fs/cgroup/pids.current"].text = "2040\n"; },
     plain,
     {"host-pids-limit"}},
    {"a full disk below the container",
     fake_apptainer,
     [](CapturedMachine& m) { m.file_systems["/tmp"].free = 0; },
     plain,
     {"host-disk-full"}},
    {"a read-only root without a /tmp",
     fake_enroot,
     [](CapturedMachine& m) { m.file_systems["/tmp"].read_only = true; },
     plain,
     {"host-disk-read-only"}},
    {"a sidecar that answers for others",
     fake_pod,
     add_fake_sidecar,
     [](Cluster& c) {
       for (Dial& dial : c.pair(1, 2).dials) dial.outcome = Outcome::wrong_answer;
     },
     {"net-service-mesh"}},
    {"an old NCCL in WSL",
     fake_wsl_distribution,
     same,
     [](Cluster& c) {
       for (NodeFacts& node : c.cluster.nodes) {
         Cluster::change(node.nccl_library, [](NcclLibrary& nccl) { nccl.version = "2.8.3"; });
       }
     },
     {"host-wsl"}},
};

}  // namespace

TEST_CASE("healthy containers: each is recognised, and nothing is wrong") {
  for (const auto& row : kHealthy) {
    CAPTURE(row.name);
    const auto cluster = cluster_of(row.machine());
    CHECK(cluster.cluster.nodes[0].identity->container == row.container);
    CHECK(codes_of(cluster, Severity::degraded) == Codes{});
  }
}

TEST_CASE("a sidecar that lets all through is a notice") {
  auto captured = fake_pod();
  add_fake_sidecar(captured);
  const auto cluster = cluster_of(captured);
  CHECK(codes_of(cluster, Severity::degraded) == Codes{});
  CHECK(codes_of(cluster, Severity::notice).contains("net-service-mesh"));
}

TEST_CASE("containers with one fault: the check that knows it speaks") {
  for (const auto& row : kIll) {
    CAPTURE(row.name);
    auto captured = row.machine();
    row.hurt(captured);
    auto cluster = cluster_of(captured);
    row.job(cluster);
    CHECK(codes_of(cluster, Severity::degraded) == row.codes);
  }
}
