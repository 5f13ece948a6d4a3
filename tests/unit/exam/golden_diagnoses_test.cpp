// Whole clusters of captured machines, each with one fault, from their files to the report that a
// person reads. DISTDOCTOR_UPDATE_GOLDEN=1 writes tests/golden anew: read what it changes. No such
// hardware is here; the shapes follow public documents, named in tests/support.
#include "collect/collectors.h"
#include "diagnose/diagnose.h"
#include "machine/machine.h"
#include "render/render.h"
#include "rules/predict.h"
#include "support/builders.h"
#include "support/container_machines.h"
#include "support/gpu_machines.h"
#include "support/nvml_answers.h"
#include "support/rdma_machines.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

namespace fs = std::filesystem;
using machine::CapturedMachine;

const fs::path kGolden = fs::path(DISTDOCTOR_SOURCE_DIR) / "tests" / "golden";

// One captured machine of the parts of two.
CapturedMachine with(CapturedMachine machine, const CapturedMachine& more) {
  for (const auto& [path, file] : more.files) machine.files.emplace(path, file);
  if (!machine.links.known()) machine.links = more.links;
  for (const auto& [argv, answer] : more.children) machine.children.emplace(argv, answer);
  return machine;
}

void look_at_devices(machine::Machine& there, NodeFacts& node) {
  collect::collect_rdma(there, {}, node);
  collect::collect_devices(there, {}, node);
  collect::collect_pci(there, {}, node);
  collect::collect_gpu(there, {}, node);
  collect::collect_nvml(there, {}, node);
  collect::collect_kernel_log(there, {}, node);
  NodeFacts seen;
  collect::collect_links(there, {}, seen);
  if (!seen.links.known()) return;
  testing::World::change(node.links, [&](std::vector<Link>& links) {
    links.insert(links.end(), seen.links->begin(), seen.links->end());
  });
}

void look_at_container(machine::Machine& there, NodeFacts& node) {
  const Identity before = *node.identity;
  collect::collect_identity(there, {}, node);
  testing::World::change(node.identity, [&](Identity& identity) {
    identity.hostname = before.hostname;
    identity.boot_id = before.boot_id;
  });
  collect::collect_shm(there, {}, node);
  collect::collect_limits(there, {}, node);
  collect::collect_world(there, {}, node);
  node.context = Context::container;
}

using Look = void (*)(machine::Machine& there, NodeFacts& node);

// The healthy cluster, with what these machines have in place of its own.
ClusterFacts cluster_of(const std::vector<CapturedMachine>& machines, Look look) {
  ClusterFacts cluster = healthy_cluster(machines.size());
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const auto there = machine::Machine::captured(machines[i]);
    look(*there, cluster.nodes[i]);
  }
  return cluster;
}

// --- the clusters ---

ClusterFacts h100_without_an_hca() {
  const auto healthy = with(fake_hgx_h100(), h100_with_infiniband());
  auto ill = healthy;
  std::erase_if(ill.files, [](const auto& file) {
    return file.first.find("/infiniband/mlx5_4") != std::string::npos;
  });
  return cluster_of({healthy, ill, healthy}, look_at_devices);
}

ClusterFacts efa_without_its_plugin() {
  return cluster_of({vm_with_efa(), vm_with_efa()}, look_at_devices);
}

// A driver that claims access which the cards lack.
ClusterFacts two_rtx_desktops() {
  auto desktop = fake_two_rtx();
  add_fake_nvidia_driver(desktop, "525.60.13", false);
  change_nvml(desktop, [](Nvml& nvml) {
    for (NvmlPair& pair : nvml.pairs) pair.p2p_read = pair.p2p_write = "ok";
  });
  auto cluster = cluster_of({desktop, desktop}, look_at_devices);
  cluster.job.ranks_per_node = 2;
  return cluster;
}

ClusterFacts docker_with_its_defaults() {
  auto cluster = cluster_of({fake_docker_default(), fake_docker_default()}, look_at_container);
  cluster.job.ranks_per_node = 8;
  return cluster;
}

ClusterFacts pods_with_a_sidecar() {
  auto ill = fake_pod();
  set_shm(ill, std::int64_t{64} << 20);
  add_fake_sidecar(ill);
  auto cluster = cluster_of({fake_pod(), ill}, look_at_container);
  cluster.job.ranks_per_node = 8;
  return cluster;
}

struct Row {
  std::string_view name;
  ClusterFacts (*cluster)();
};
constexpr Row kRows[] = {{"h100_without_an_hca", h100_without_an_hca},
                         {"efa_without_its_plugin", efa_without_its_plugin},
                         {"two_rtx_desktops", two_rtx_desktops},
                         {"docker_with_its_defaults", docker_with_its_defaults},
                         {"pods_with_a_sidecar", pods_with_a_sidecar}};

// --- the report ---

// The diagnosis and the verdict: the lines of the checks, and what could not be seen of a capture,
// stand in other tests.
std::string diagnosis_in(const std::string& report) {
  const auto begin = report.find("Diagnosis\n");
  if (begin == std::string::npos) return "";
  return report.substr(begin, report.find("\nNot checked:") - begin) + "\n";
}

std::string report_of(ClusterFacts cluster) {
  cluster.predicted = rules::predict(cluster);
  const auto diagnosis = diagnose::diagnose(cluster, {}, {});
  std::ostringstream out;
  render::text({.command = "check", .diagnosis = diagnosis, .cluster = cluster}, {}, out);
  return diagnosis_in(out.str());
}

std::string slurp(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("clusters with a fault: what a person reads") {
  for (const Row& row : kRows) {
    CAPTURE(std::string(row.name));
    const auto path = kGolden / (std::string(row.name) + ".txt");
    const auto report = report_of(row.cluster());
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (std::getenv("DISTDOCTOR_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << report;
    CHECK(slurp(path) == report);
  }
}
