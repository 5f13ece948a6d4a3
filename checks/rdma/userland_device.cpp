// What sysfs shows of RDMA, programs must be able to open: device nodes, libibverbs, its providers.
#include <distdoctor/check.h>

#include "chosen.h"

#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

// Active ports of one node that NCCL would take, and cannot, for one reason.
struct Unusable {
  std::vector<const RdmaDevice*> devices;
  bool made_for_it = false;
};

std::map<RdmaTrouble, Unusable> unusable(const RdmaNode& one) {
  std::map<RdmaTrouble, Unusable> by_trouble;
  for (const HcaLeftOut& hca : one.hcas->left_out) {
    const RdmaDevice* device = find_rdma_device(*one.rdma, hca.device);
    const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
    if (hca.why != HcaPassed::not_usable || device == nullptr || port == nullptr) continue;
    Unusable& group = by_trouble[rdma_trouble(*one.rdma, *device)];
    group.devices.push_back(device);
    group.made_for_it = group.made_for_it || made_for_it(*device, *port);
  }
  by_trouble.erase(RdmaTrouble::none);
  return by_trouble;
}

std::string names(const std::vector<const RdmaDevice*>& devices) {
  std::vector<std::string> all;
  for (const RdmaDevice* device : devices) {
    if (std::ranges::find(all, device->name) == all.end()) all.push_back(device->name);
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string node_of(const RdmaDevice& device) {
  return device.uverbs.empty() ? "/dev/infiniband" : device.uverbs;
}

std::string reason(RdmaTrouble trouble, const RdmaDevice& device) {
  switch (trouble) {
    case RdmaTrouble::no_library:
      return "there is no libibverbs.so.1";
    case RdmaTrouble::no_node:
      return device.uverbs.empty() ? "the module ib_uverbs has made no device node"
                                   : node_of(device) + " is not there";
    case RdmaTrouble::refused:
      return node_of(device) + " is there, but may not be opened";
    default:
      return fmt::format("libibverbs has no provider {}", verbs_provider_of(device.driver));
  }
}

Fix give_devices(const NodeFacts& node) {
  Fix fix{.node = node.host, .kind = Fix::Kind::manual, .text = ""};
  const std::string container = container_of(node);
  if (container == "kubernetes") {
    fix.text =
        "request the RDMA resource of the cluster's device plugin (rdma/...) in the pod's limits, "
        "and add the capability IPC_LOCK";
  } else if (container == "enroot") {
    fix.text = "srun --container-mounts=/dev/infiniband:/dev/infiniband ...";
  } else {
    fix.text =
        "start the container with --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1";
  }
  return fix;
}

Fix install(const NodeFacts& node) {
  const std::string os = node.identity.known() ? node.identity->os : "";
  const bool debian =
      os.find("Debian") != std::string::npos || os.find("Ubuntu") != std::string::npos;
  if (debian) {
    return {.node = node.host,
            .kind = Fix::Kind::shell,
            .command = "apt-get install -y libibverbs1 ibverbs-providers",
            .text = "as root, where the job runs: in its container's image"};
  }
  return {.node = node.host,
          .kind = Fix::Kind::manual,
          .text =
              "install libibverbs with its providers where the job runs (Debian, Ubuntu: "
              "libibverbs1 ibverbs-providers; RHEL: libibverbs)"};
}

Fix mend(const NodeFacts& node, RdmaTrouble trouble, const RdmaDevice& device) {
  if (trouble == RdmaTrouble::no_library || trouble == RdmaTrouble::no_provider) {
    return install(node);
  }
  if (!container_of(node).empty()) return give_devices(node);
  if (trouble == RdmaTrouble::no_node) {
    return {.node = node.host,
            .kind = Fix::Kind::shell,
            .command = "modprobe ib_uverbs && udevadm trigger --subsystem-match=infiniband_verbs",
            .text = "as root; for good: a line `ib_uverbs` in /etc/modules-load.d/rdma.conf"};
  }
  return {.node = node.host,
          .kind = Fix::Kind::shell,
          .command = "chmod 0666 " + shell_quote(node_of(device)),
          .text =
              "as root, until the next boot; for good: the udev rules of rdma-core. Where the "
              "mode allows it already, a device cgroup forbids it (Slurm: cgroup.conf)"};
}

// With no device here and some elsewhere ranks do not meet. Else NCCL goes on over sockets, or with
// fewer ports; what nobody would miss is worth a line only, and one node alone needs no network.
Severity severity_of(const Case& c, const RdmaNode& one, const Unusable& group, bool apart) {
  const bool matters = group.made_for_it && c.cluster.nodes.size() > 1;
  const Severity severity = apart     ? Severity::blocker
                            : matters ? Severity::degraded
                                      : Severity::notice;
  return capped_by_context(capped(c, severity), one.node->context);
}

void judge_node(const Case& c, const RdmaNode& one, bool others_use, Judge& judge) {
  const bool apart = others_use && one.hcas->used.empty();
  for (const auto& [trouble, group] : unusable(one)) {
    const RdmaDevice& first = *group.devices.front();
    Finding finding{
        .code = "rdma-no-userland-device",
        .severity = severity_of(c, one, group, apart),
        .certainty = trouble == RdmaTrouble::no_node || trouble == RdmaTrouble::refused
                         ? Certainty::proved
                         : Certainty::likely,
        .symptom = apart ? Symptom::hang : Symptom::slow,
        .subjects = {.nodes = {one.node->host}},
        .summary = fmt::format("{} has {}, which programs there cannot use: {}", one.node->host,
                               names(group.devices), reason(trouble, first))};
    for (const RdmaDevice* device : group.devices) {
      finding.subjects.devices.push_back(one.node->host + "/" + device->name);
    }
    finding.evidence.push_back(
        {.node = one.node->host,
         .fact = "rdma." + first.name,
         .observed = reason(trouble, first),
         .expected = "to be opened by libibverbs",
         .context = std::string(slug(one.node->context)),
         .command = "ls -l /dev/infiniband; ibv_devinfo -d " + shell_quote(first.name)});
    finding.fix = {mend(*one.node, trouble, first)};
    judge.report(std::move(finding));
  }
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  for (const RdmaNode& one : nodes) judge_node(c, one, any_used(nodes), judge);
}

constexpr Page kPage{
    .meaning =
        "sysfs shows an RDMA device with an active port, but a program that lives in the same "
        "world cannot open it: /dev/infiniband/uverbsN is missing or refused, or there is no "
        "libibverbs with a provider for the device's driver. NCCL says `NET/IB : No device found` "
        "or `Unable to open device` and goes on over sockets. In a container sysfs is the host's, "
        "device nodes and libraries are not.",
    .confirm =
        "In the job's own container or step: `ls -l /dev/infiniband`, `ibv_devinfo`, "
        "`ldconfig -p | grep ibverbs`.",
    .fix =
        "Docker: `--device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1`. Kubernetes: "
        "the "
        "RDMA device plugin's resource. Slurm with containers: `--container-mounts=/dev/infiniband:"
        "/dev/infiniband`. The libraries: packages libibverbs1 and ibverbs-providers in the image.",
    .verify = "`ibv_devinfo` lists the device; NCCL_DEBUG=INFO prints `NET/IB : Using [0]...`."};
constexpr std::string_view kCauses[] = {"rdma-hca-sets-differ", "net-slow-interface"};
constexpr Code kCodes[] = {{.id = "rdma-no-userland-device",
                            .fault_class = FaultClass::container_no_ib,
                            .worst = Severity::blocker,
                            .title = "Programs cannot use the RDMA device",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check rdma_userland_device{
    .title = "Programs can open the RDMA devices", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
