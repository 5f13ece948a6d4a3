// What sysfs shows of RDMA, programs must be able to open: device nodes, libibverbs, its providers.
#include <distdoctor/check.h>

#include "refusal.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

// What libibverbs said when it was to open the device: empty, it did; none, it was not asked.
std::optional<std::string> refusal_of(const NodeFacts& node, const std::string& device) {
  if (!node.verbs.known()) return std::nullopt;
  const Verbs& verbs = *node.verbs;
  if (!verbs.error.empty()) return verbs.error;
  const auto found = std::ranges::find(verbs.devices, device, &VerbsDevice::name);
  if (found != verbs.devices.end()) return found->error;
  return verbs.warnings.empty() ? "libibverbs does not list it"
                                : fmt::format("{}", fmt::join(verbs.warnings, " "));
}

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
    if (refusal_of(*one.node, hca.device) == "") continue;  // what sysfs lets us guess is wrong
    Unusable& group = by_trouble[rdma_trouble(*one.rdma, *device)];
    group.devices.push_back(device);
    group.made_for_it = group.made_for_it || made_for_it(*device, *port);
  }
  by_trouble.erase(RdmaTrouble::none);
  return by_trouble;
}

// Ports that look usable from afar, and that libibverbs could not open.
std::map<RdmaTrouble, Unusable> refused(const RdmaNode& one) {
  std::map<RdmaTrouble, Unusable> by_trouble;
  for (const HcaChoice& hca : one.hcas->used) {
    const RdmaDevice* device = find_rdma_device(*one.rdma, hca.device);
    const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
    const auto words = refusal_of(*one.node, hca.device);
    if (device == nullptr || port == nullptr || !words || words->empty()) continue;
    const bool listed = words->starts_with("ibv_open_device");
    Unusable& group = by_trouble[listed ? RdmaTrouble::refused : RdmaTrouble::no_provider];
    group.devices.push_back(device);
    group.made_for_it = group.made_for_it || made_for_it(*device, *port);
  }
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

Fix by_hand(const NodeFacts& node, std::string text) {
  return {.node = node.host, .kind = Fix::Kind::manual, .text = std::move(text)};
}

Fix open_node(const NodeFacts& node, const RdmaDevice& device, bool sure) {
  const char* doubt =
      sure ? ""
           : ". Where the mode allows it already, a device cgroup forbids it (Slurm: cgroup.conf)";
  return {
      .node = node.host,
      .kind = Fix::Kind::shell,
      .command = "chmod 0666 " + shell_quote(node_of(device)),
      .text = std::string("as root, until the next boot; for good: the udev rules of rdma-core") +
              doubt};
}

Fix admit(const RdmaNode& one, const RdmaDevice& device) {
  const NodeFacts& node = *one.node;
  switch (refusal_kind(one, device.name)) {
    case Refusal::device_group:
    case Refusal::device_group_or_namespace:
      return by_hand(node,
                     "let the group of the job's step or service have " + node_of(device) +
                         ": Slurm's cgroup.conf (ConstrainDevices, and the allowed devices), a "
                         "systemd unit's DeviceAllow=; the file's mode does not matter here");
    case Refusal::handles:
      return by_hand(node,
                     "raise hca_handle in rdma.max of the job's control group, or end what "
                     "holds the handles (rdma.current)");
    case Refusal::mode:
      return open_node(node, device, true);
    default:
      return open_node(node, device, false);
  }
}

Fix share_namespace(const NodeFacts& node, const RdmaDevice& device) {
  return by_hand(node,
                 "RDMA devices belong to one network namespace each here (`rdma system`): "
                 "start the job's container in the host's network, or give its namespace the "
                 "device on the host, `rdma dev set " +
                     shell_quote(device.name) + " netns ...`");
}

Fix mend(const RdmaNode& one, RdmaTrouble trouble, const RdmaDevice& device) {
  const NodeFacts& node = *one.node;
  if (in_another_namespace(one, device)) return share_namespace(node, device);
  if (trouble == RdmaTrouble::no_library || trouble == RdmaTrouble::no_provider) {
    return install(node);
  }
  if (trouble == RdmaTrouble::refused && refusal_kind(one, device.name) == Refusal::handles) {
    return admit(one, device);
  }
  if (!container_of(node).empty()) return give_devices(node);
  if (trouble == RdmaTrouble::refused) return admit(one, device);
  return {.node = node.host,
          .kind = Fix::Kind::shell,
          .command = "modprobe ib_uverbs && udevadm trigger --subsystem-match=infiniband_verbs",
          .text = "as root; for good: a line `ib_uverbs` in /etc/modules-load.d/rdma.conf"};
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

std::string why_of(const RdmaNode& one, RdmaTrouble trouble, const RdmaDevice& device, bool tried) {
  const std::string said =
      tried ? "libibverbs says " + refusal_of(*one.node, device.name).value_or("nothing")
            : reason(trouble, device);
  if (in_another_namespace(one, device)) return said + ": it is in another network namespace";
  return trouble == RdmaTrouble::refused
             ? said + std::string(text_of(refusal_kind(one, device.name)))
             : said;
}

Evidence what_programs_get(const RdmaNode& one,
                           const RdmaDevice& device,
                           const std::string& words) {
  return {.node = one.node->host,
          .fact = "verbs." + device.name,
          .observed = words,
          .expected = "to be opened",
          .context = std::string(slug(one.node->context)),
          .command = "ibv_devinfo -d " + shell_quote(device.name)};
}

struct Group {
  RdmaTrouble trouble;
  const Unusable* unusable;
  bool tried;  // libibverbs failed, where sysfs showed nothing wrong
};

void report(const Case& c, const RdmaNode& one, const Group& group, bool apart, Judge& judge) {
  const RdmaDevice& first = *group.unusable->devices.front();
  const auto words = refusal_of(*one.node, first.name);
  const bool plain = group.trouble == RdmaTrouble::no_node || group.trouble == RdmaTrouble::refused;
  const std::string why = why_of(one, group.trouble, first, group.tried);
  Finding finding{.code = "rdma-no-userland-device",
                  .severity = severity_of(c, one, *group.unusable, apart),
                  .certainty = plain || words ? Certainty::proved : Certainty::likely,
                  .symptom = apart ? Symptom::hang : Symptom::slow,
                  .subjects = {.nodes = {one.node->host}},
                  .summary = fmt::format("{} has {}, which programs there cannot use: {}",
                                         one.node->host, names(group.unusable->devices), why)};
  for (const RdmaDevice* device : group.unusable->devices) {
    finding.subjects.devices.push_back(one.node->host + "/" + device->name);
  }
  if (!group.tried) {
    finding.evidence.push_back(
        {.node = one.node->host,
         .fact = "rdma." + first.name,
         .observed = why,
         .expected = "to be opened by libibverbs",
         .context = std::string(slug(one.node->context)),
         .command = "ls -l /dev/infiniband; ibv_devinfo -d " + shell_quote(first.name)});
  }
  if (words) finding.evidence.push_back(what_programs_get(one, first, *words));
  finding.fix = {mend(one, group.trouble, first)};
  judge.report(std::move(finding));
}

bool all_refused(const RdmaNode& one) {
  return std::ranges::all_of(one.hcas->used, [&](const HcaChoice& hca) {
    const auto words = refusal_of(*one.node, hca.device);
    return words && !words->empty();
  });
}

void judge_node(const Case& c, const RdmaNode& one, bool others_use, Judge& judge) {
  const bool apart = others_use && all_refused(one);
  for (const auto& [trouble, group] : unusable(one)) {
    report(c, one, {trouble, &group, false}, apart, judge);
  }
  for (const auto& [trouble, group] : refused(one)) {
    report(c, one, {trouble, &group, true}, apart, judge);
  }
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  const bool wanted = std::ranges::any_of(
      nodes, [](const RdmaNode& one) { return !one.hcas->used.empty() || !unusable(one).empty(); });
  if (!wanted && any_device(nodes)) judge.skip("NCCL would use none of them");
  for (const RdmaNode& one : nodes) judge_node(c, one, any_used(nodes), judge);
}

constexpr Page kPage{
    .meaning =
        "sysfs shows an RDMA device with an active port, but a program that lives in the same "
        "world cannot open it: /dev/infiniband/uverbsN is missing or refused, or there is no "
        "libibverbs with a provider for the device's driver. NCCL says `NET/IB : No device found` "
        "or `Unable to open device` and goes on over sockets. In a container sysfs is the host's, "
        "device nodes and libraries are not. EACCES is the file's mode, EPERM a device control "
        "group, whatever the mode says.",
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

extern const Check rdma_userland_device{.title = "Programs can open the RDMA devices",
                                        .codes = kCodes,
                                        .run = run,
                                        .needs = Needs::rdma};

}  // namespace distdoctor::checks
