// The ports that the job counts on are ACTIVE.
#include <distdoctor/check.h>

#include "rails.h"

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

struct Idle {
  const RdmaDevice* device;
  const RdmaPort* port;
  std::vector<const RdmaNode*> twins;  // nodes that use the port of that name and kind
  bool named;                          // NCCL_IB_HCA names it
};

// NCCL_IB_HCA is a list of what to take, and has this port's whole name. NCCL looks at the state
// first, so that nothing tells whether it filtered the port.
bool named_by_list(const RdmaNode& one, const std::string& device, int port) {
  const Setting* setting = find_setting(*one.prediction, "NCCL_IB_HCA");
  std::string_view rest = setting == nullptr ? "" : std::string_view(setting->value);
  if (rest.starts_with('^')) return false;
  if (rest.starts_with('=')) rest.remove_prefix(1);
  while (!rest.empty()) {
    const std::string_view element = rest.substr(0, rest.find(','));
    if (element == device || element == port_text(device, port)) return true;
    rest.remove_prefix(std::min(element.size() + 1, rest.size()));
  }
  return false;
}

bool uses_port(const RdmaNode& one, const std::string& device, int port) {
  return std::ranges::any_of(one.hcas->used, [&](const HcaChoice& hca) {
    return hca.device == device && hca.port == port;
  });
}

std::vector<const RdmaNode*> twins_of(const std::vector<RdmaNode>& nodes,
                                      const RdmaNode& one,
                                      const RdmaDevice& device,
                                      const RdmaPort& port) {
  std::vector<const RdmaNode*> twins;
  for (const RdmaNode& other : nodes) {
    const RdmaPort* same = find_rdma_port(*other.rdma, device.name, port.number);
    if (other.node != one.node && same != nullptr && same->layer == port.layer &&
        uses_port(other, device.name, port.number)) {
      twins.push_back(&other);
    }
  }
  return twins;
}

std::vector<Idle> idle_ports(const std::vector<RdmaNode>& nodes, const RdmaNode& one) {
  std::vector<Idle> idle;
  for (const HcaLeftOut& hca : one.hcas->left_out) {
    const RdmaDevice* device = find_rdma_device(*one.rdma, hca.device);
    const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
    if (device == nullptr || port == nullptr || hca.why != HcaPassed::not_active) continue;
    if (port->layer == RdmaLayer::other || port->state == "ACTIVE") continue;
    const bool named = named_by_list(one, hca.device, hca.port);
    auto twins = twins_of(nodes, one, *device, *port);
    if (named || !twins.empty()) idle.push_back({device, port, std::move(twins), named});
  }
  return idle;
}

// The nodes that use the port of that name take as many of each kind as this one: then the kernel
// may only have numbered the ports otherwise.
bool numbered_otherwise(const RdmaNode& one, const Idle& idle) {
  const auto own = rails_of(one, Rates::counted).kinds;
  return !idle.named && std::ranges::all_of(idle.twins, [&](const RdmaNode* twin) {
    return rails_of(*twin, Rates::counted).kinds == own;
  });
}

// Its link is up, but nobody has given it an address in the fabric yet.
bool waits_for_manager(const RdmaPort& port) {
  return port.layer == RdmaLayer::infiniband && (port.state == "INIT" || port.state == "ARMED");
}

// An InfiniBand port that a subnet manager has made ACTIVE: "mlx5_0:1 of node0"; empty: there is
// none on the job's nodes.
std::string managed_port(const std::vector<RdmaNode>& nodes) {
  for (const RdmaNode& one : nodes) {
    for (const RdmaDevice& device : one.rdma->devices) {
      for (const RdmaPort& port : device.ports) {
        if (port.layer != RdmaLayer::infiniband || port.state != "ACTIVE") continue;
        return port_text(device.name, port.number) + " of " + one.node->host;
      }
    }
  }
  return "";
}

constexpr const char* kStartManager =
    "no InfiniBand port of the job's nodes is ACTIVE: find the subnet manager of this fabric "
    "(managed switch, UFM or a host) and start it again. Only where it never had one: `systemctl "
    "start opensm` on a single host, since a fabric has one manager and a second one does harm";

std::string manage(const RdmaPort& port, const std::string& managed) {
  if (managed.empty() && port.sm_lid == 0) return kStartManager;
  if (managed.empty() || port.sm_lid != 0) {
    return "see on the subnet manager why it does not activate this port (`sminfo`, its log)";
  }
  return "a subnet manager is at work (" + managed +
         " is ACTIVE), so start no second one, which does harm: see whether this port's cable goes "
         "to the same fabric (`iblinkinfo` on the switch side), and what the manager's log says of "
         "it: partition, a wrong switch, a bad cable";
}

std::string netdev_of(const NodeFacts& node, const RdmaDevice& device) {
  if (!node.links.known()) return "";
  const auto link = std::ranges::find(*node.links, device.name, &Link::rdma_device);
  return link == node.links->end() ? "" : link->name;
}

Fix mend(const RdmaNode& one, const Idle& idle, const std::string& managed) {
  Fix fix{.node = one.node->host, .kind = Fix::Kind::manual, .text = ""};
  const std::string netdev = netdev_of(*one.node, *idle.device);
  if (waits_for_manager(*idle.port)) {
    fix.text = manage(*idle.port, managed);
  } else if (idle.port->layer == RdmaLayer::ethernet && idle.port->physical == "Disabled" &&
             !netdev.empty()) {
    fix.kind = Fix::Kind::shell;
    fix.command = "ip link set dev " + shell_quote(netdev) + " up";
    fix.text = "as root; if it stays down: cable, transceiver, switch port";
  } else {
    fix.text = "look at cable, transceiver and switch port (`mlxlink -d " + idle.device->name +
               "`, `ibdiagnet`)";
  }
  return fix;
}

std::string state_text(const RdmaPort& port) {
  return port.physical.empty() ? port.state : port.state + ", " + port.physical;
}

Evidence see_manager(const RdmaNode& one, const RdmaDevice& device, const RdmaPort& port) {
  return {.node = one.node->host,
          .fact = "rdma." + port_text(device.name, port.number) + ".sm_lid",
          .observed = "0: no subnet manager was here",
          .expected = "the address of one",
          .command = "cat " + port_file(device.name, port.number, "sm_lid")};
}

Evidence see_state(const RdmaNode& one, const RdmaDevice& device, const RdmaPort& port) {
  return {.node = one.node->host,
          .fact = "rdma." + port_text(device.name, port.number) + ".state",
          .observed = state_text(port),
          .expected = "ACTIVE",
          .command = "cat " + port_file(device.name, port.number, "state") + "; ibstat " +
                     shell_quote(device.name)};
}

std::string summary_of(const RdmaNode& one, const Idle& idle, bool numbered) {
  const auto what =
      fmt::format("port {} of {} is {}", port_text(idle.device->name, idle.port->number),
                  one.node->host, state_text(*idle.port));
  if (idle.twins.empty()) return what + ", though NCCL_IB_HCA names it";
  auto twin = fmt::format("{}, the same one of {} is ACTIVE", what, idle.twins.front()->node->host);
  if (!numbered) return twin;
  return fmt::format("{}; both take {}, so their ports may only be numbered differently", twin,
                     rails_of(one, Rates::counted).text());
}

// Whether the node lacks it, and the others do not.
Severity severity_of(const RdmaNode& one, const Idle& idle, bool numbered) {
  if (numbered) return Severity::notice;
  const bool alone = one.hcas->used.empty() && !idle.twins.empty();
  return alone ? Severity::blocker : Severity::degraded;
}

Certainty certainty_of(const Idle& idle, bool numbered) {
  if (idle.named) return Certainty::proved;
  return numbered ? Certainty::possible : Certainty::likely;
}

void judge_port(const Case& c,
                const RdmaNode& one,
                const Idle& idle,
                const std::string& managed,
                Judge& judge) {
  const bool manager = waits_for_manager(*idle.port);
  const bool numbered = numbered_otherwise(one, idle);
  const Severity severity = severity_of(one, idle, numbered);
  Finding finding{.code = manager ? "rdma-port-init" : "rdma-port-down",
                  .severity = capped(c, severity),
                  .certainty = certainty_of(idle, numbered),
                  .symptom = severity == Severity::blocker ? Symptom::hang : Symptom::slow,
                  .subjects = {.nodes = {one.node->host},
                               .devices = {one.node->host + "/" + idle.device->name}},
                  .summary = summary_of(one, idle, numbered)};
  finding.evidence = {see_state(one, *idle.device, *idle.port)};
  if (manager && idle.port->sm_lid == 0) {
    finding.evidence.push_back(see_manager(one, *idle.device, *idle.port));
  }
  finding.fix = {mend(one, idle, managed)};
  judge.report(std::move(finding));
}

// --- a fabric without a manager ---

// Ports with a link, of a job that does not choose among them, and no manager anywhere.
std::vector<Idle> unmanaged_ports(const RdmaNode& one) {
  std::vector<Idle> ports;
  if (find_setting(*one.prediction, "NCCL_IB_HCA") != nullptr) return ports;
  for (const HcaLeftOut& hca : one.hcas->left_out) {
    const RdmaDevice* device = find_rdma_device(*one.rdma, hca.device);
    const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
    if (device == nullptr || port == nullptr || port->sm_lid != 0) continue;
    if (waits_for_manager(*port) && port->physical == "LinkUp") {
      ports.push_back({device, port, {}, false});
    }
  }
  return ports;
}

// One finding for all: what is amiss is no node's.
void judge_fabric(const Case& c, const std::vector<RdmaNode>& nodes, Judge& judge) {
  Finding finding{.code = "rdma-port-init",
                  .severity = capped(c, any_used(nodes) ? Severity::notice : Severity::degraded),
                  .certainty = Certainty::possible,
                  .symptom = Symptom::slow,
                  .summary = ""};
  std::size_t count = 0;
  for (const RdmaNode& one : nodes) {
    const auto ports = unmanaged_ports(one);
    if (ports.empty()) continue;
    count += ports.size();
    finding.subjects.nodes.push_back(one.node->host);
    finding.evidence.push_back(see_state(one, *ports.front().device, *ports.front().port));
    finding.evidence.push_back(see_manager(one, *ports.front().device, *ports.front().port));
  }
  if (finding.subjects.nodes.size() < 2) return;
  finding.summary = fmt::format(
      "{} InfiniBand ports of {} have a link and wait for a subnet manager, and none of the job's "
      "nodes has an ACTIVE one",
      count, fmt::join(finding.subjects.nodes, ", "));
  finding.fix = {{.node = "*", .kind = Fix::Kind::manual, .text = kStartManager}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (one_alone(nodes, judge)) return;
  const std::string managed = managed_port(nodes);
  for (const RdmaNode& one : nodes) {
    for (const Idle& idle : idle_ports(nodes, one)) {
      judge_port(c, one, idle, managed, judge);
    }
  }
  if (managed.empty()) judge_fabric(c, nodes, judge);
  if (judge.findings().empty()) all_unused(nodes, judge);
}

constexpr std::string_view kConfirm =
    "`ibstat` or `rdma link` on that node: State and Physical state of the port.";
constexpr std::string_view kVerify =
    "`ibstat` shows `State: Active`, `Physical state: LinkUp`; NCCL lists the port in `NET/IB : "
    "Using`.";
constexpr Page kDownPage{
    .meaning =
        "The port of an RDMA device has no link. NCCL passes over it without a word: the node has "
        "fewer rails than the others, or none, and then uses sockets while they use RDMA. Ports "
        "that nobody counts on (not named in NCCL_IB_HCA, and down on all nodes) are not meant. "
        "Where the nodes take as many ports of each kind, they may only be numbered differently.",
    .confirm = kConfirm,
    .fix =
        "`Disabled`: switch it on (`ip link set dev NETDEV up` for RoCE). `Polling`: cable, "
        "transceiver or switch port.",
    .verify = kVerify};
constexpr Page kInitPage{
    .meaning =
        "The InfiniBand link is up, but the port is not ACTIVE: no subnet manager has configured "
        "it. NCCL passes over it without a word.",
    .confirm = "`ibstat`: `State: Initializing`, `SM lid: 0`; `sminfo` finds no subnet manager.",
    .fix =
        "Where another InfiniBand port of the job is ACTIVE a manager runs: look for a wrong "
        "switch, a cable or a partition, and in the manager's log. Where none is, start the "
        "fabric's manager again (switch, UFM or host). Never start a second one: two managers "
        "that do not know of each other take the fabric apart.",
    .verify = kVerify};
constexpr std::string_view kCauses[] = {"rdma-hca-sets-differ", "net-slow-interface"};
constexpr Code kCodes[] = {{.id = "rdma-port-down",
                            .fault_class = FaultClass::ib_port_down,
                            .worst = Severity::blocker,
                            .title = "An RDMA port is down",
                            .causes = kCauses,
                            .page = kDownPage},
                           {.id = "rdma-port-init",
                            .fault_class = FaultClass::ib_port_init,
                            .worst = Severity::blocker,
                            .title = "An InfiniBand port waits for a subnet manager",
                            .causes = kCauses,
                            .page = kInitPage}};

}  // namespace

extern const Check rdma_port_state{.title = "The RDMA ports of the job are active",
                                   .codes = kCodes,
                                   .run = run,
                                   .needs = Needs::rdma};

}  // namespace distdoctor::checks
