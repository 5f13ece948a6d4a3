// GPUs of one machine that are spread over containers: NCCL uses shared memory and peer-to-peer
// only between processes that have one hostname, one boot_id and one /dev/shm.
#include <distdoctor/gpus.h>

#include "seen.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace distdoctor::checks {
namespace {

using namespace host;  // NOLINT(google-build-using-namespace): what these checks share

using Nodes = std::vector<const NodeFacts*>;

std::string wall(const NodeFacts& node, const char* name) {
  const auto found = node.world->namespaces.find(name);
  return found == node.world->namespaces.end() ? "" : found->second;
}

// It replaces hostname and boot_id; empty: not set.
std::string host_id(const Case& c, const NodeFacts& node) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  const Setting* setting =
      prediction == nullptr ? nullptr : find_setting(*prediction, "NCCL_HOSTID");
  return setting == nullptr ? "" : setting->value;
}

bool differ(const std::string& one, const std::string& other) {
  return !one.empty() && !other.empty() && one != other;
}

// Containers on one kernel. Equal ids of namespaces would prove nothing: each kernel gives its
// first ones the same. What a copied machine has in common with its original has the same ids.
bool apart(const Case& c, const NodeFacts& a, const NodeFacts& b) {
  if (!differ(wall(a, "mnt"), wall(b, "mnt"))) return false;
  const std::string id = host_id(c, a);
  if (id != host_id(c, b)) return false;  // who gives them different ids wants them apart
  const bool one_host = !id.empty() || a.identity->hostname == b.identity->hostname;
  return one_host ? differ(a.world->shm_device, b.world->shm_device)
                  : differ(wall(a, "uts"), wall(b, "uts"));
}

// Those that NCCL keeps apart from any of the others.
Nodes kept_apart(const Case& c, const Nodes& nodes) {
  Nodes all;
  std::ranges::copy_if(nodes, std::back_inserter(all), [&](const NodeFacts* node) {
    return std::ranges::any_of(
        nodes, [&](const NodeFacts* other) { return other != node && apart(c, *node, *other); });
  });
  return all;
}

// By boot_id: the containers with GPUs, in the job's order.
std::map<std::string, Nodes> by_machine(const Case& c, Judge& judge) {
  std::map<std::string, Nodes> machines;
  for (const NodeFacts& node : c.cluster.nodes) {
    const Identity* identity = judge.see(node, "identity", node.identity);
    const World* world = judge.see(node, "world", node.world);
    if (identity == nullptr || world == nullptr) continue;
    const bool counts =
        !identity->container.empty() && !identity->boot_id.empty() && has_gpus(node);
    if (counts) machines[identity->boot_id].push_back(&node);
  }
  return machines;
}

std::string seen_by_nccl(const Case& c, const NodeFacts& node) {
  const std::string id = host_id(c, node);
  const std::string host = id.empty() ? fmt::format("hostname {}, boot_id {}",
                                                    node.identity->hostname, node.identity->boot_id)
                                      : "NCCL_HOSTID " + id;
  const std::string& shm = node.world->shm_device;
  return host + (shm.empty() ? "" : ", /dev/shm on device " + shm);
}

std::string join_them(const NodeFacts& node) {
  if (container_of(node) == "kubernetes") {
    return "give one pod all GPUs of the machine; or hostIPC: true and hostNetwork: true, and one "
           "NCCL_HOSTID for the pods of one machine";
  }
  return "give one container all GPUs of the machine; or start each with --ipc=host --uts=host "
         "--network=host";
}

void report(const Case& c, const Nodes& nodes, Judge& judge) {
  std::vector<std::string> names;
  for (const NodeFacts* node : nodes) names.push_back(node->host);
  Finding finding{
      .code = "host-containers-apart",
      .severity = c.cluster.job.nccl == Use::yes ? Severity::degraded : Severity::notice,
      .certainty = Certainty::likely,
      .symptom = Symptom::slow,
      .subjects = {.nodes = names},
      .summary = fmt::format("{} are containers of one machine that NCCL takes for several: data "
                             "between their GPUs goes over the network, not by NVLink, PCIe or "
                             "shared memory",
                             fmt::join(names, ", "))};
  for (const NodeFacts* node : nodes) {
    finding.evidence.push_back(
        seen(*node, "its host, to NCCL", seen_by_nccl(c, *node), "one for all on this machine",
             "hostname; cat /proc/sys/kernel/random/boot_id; stat -c %d /dev/shm"));
  }
  finding.fix = {by_hand(*nodes.front(), join_them(*nodes.front()))};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  for (const auto& [boot, nodes] : by_machine(c, judge)) {
    const Nodes all = kept_apart(c, nodes);
    if (!all.empty()) report(c, all, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "NCCL takes two processes for neighbours when hostname and boot_id are the same (or "
        "NCCL_HOSTID is), and shares memory when /dev/shm is one device, too. Containers of one "
        "machine have a hostname and a /dev/shm each, so their GPUs talk over the network.",
    .confirm =
        "`hostname; cat /proc/sys/kernel/random/boot_id; stat -c %d /dev/shm` in each; "
        "NCCL_DEBUG=INFO prints `via NET/` between GPUs of one machine.",
    .fix =
        "One container for all GPUs of a machine. Else `--ipc=host --uts=host --network=host` for "
        "each of them (cuMem hands file descriptors over sockets of one network namespace).",
    .verify = "NCCL_DEBUG=INFO prints `via P2P/` or `via SHM/` between them."};
constexpr Code kCodes[] = {{.id = "host-containers-apart",
                            .fault_class = FaultClass::same_hostname,
                            .worst = Severity::degraded,
                            .title = "Containers of one machine look like several machines",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check host_containers_apart{.title = "GPUs of one machine are neighbours to NCCL",
                                         .codes = kCodes,
                                         .run = run,
                                         .needs = Needs::pairs};

}  // namespace distdoctor::checks
