// The ports that the job counts on are ACTIVE.
#include <distdoctor/check.h>

#include "chosen.h"

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

struct Idle {
  const RdmaDevice* device;
  const RdmaPort* port;
  std::string twin;  // a node where the port of that name is ACTIVE; empty: none
  bool named;        // NCCL_IB_HCA names it
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

bool uses(const RdmaNode& one, const std::string& device, int port) {
  return std::ranges::any_of(one.hcas->used, [&](const HcaChoice& hca) {
    return hca.device == device && hca.port == port;
  });
}

// A node that uses the port of this name and kind.
std::string twin_of(const std::vector<RdmaNode>& nodes,
                    const RdmaNode& one,
                    const RdmaDevice& device,
                    const RdmaPort& port) {
  for (const RdmaNode& other : nodes) {
    const RdmaPort* same = find_rdma_port(*other.rdma, device.name, port.number);
    if (other.node != one.node && same != nullptr && same->layer == port.layer &&
        uses(other, device.name, port.number)) {
      return other.node->host;
    }
  }
  return "";
}

std::vector<Idle> idle_ports(const std::vector<RdmaNode>& nodes, const RdmaNode& one) {
  std::vector<Idle> idle;
  for (const HcaLeftOut& hca : one.hcas->left_out) {
    const RdmaDevice* device = find_rdma_device(*one.rdma, hca.device);
    const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
    if (device == nullptr || port == nullptr || hca.why != HcaPassed::not_active) continue;
    if (port->layer == RdmaLayer::other || port->state.empty() || port->state == "ACTIVE") continue;
    const bool named = named_by_list(one, hca.device, hca.port);
    std::string twin = twin_of(nodes, one, *device, *port);
    if (named || !twin.empty()) idle.push_back({device, port, std::move(twin), named});
  }
  return idle;
}

// Its link is up, but nobody has given it an address in the fabric yet.
bool waits_for_manager(const Idle& idle) {
  return idle.port->layer == RdmaLayer::infiniband &&
         (idle.port->state == "INIT" || idle.port->state == "ARMED");
}

std::string netdev_of(const NodeFacts& node, const RdmaDevice& device) {
  if (!node.links.known()) return "";
  const auto link = std::ranges::find(*node.links, device.name, &Link::rdma_device);
  return link == node.links->end() ? "" : link->name;
}

Fix mend(const RdmaNode& one, const Idle& idle) {
  Fix fix{.node = one.node->host, .kind = Fix::Kind::manual, .text = ""};
  const std::string netdev = netdev_of(*one.node, *idle.device);
  if (waits_for_manager(idle)) {
    fix.text = idle.port->sm_lid == 0
                   ? "start a subnet manager in this fabric: on one host `systemctl start opensm`, "
                     "or on the managed switch"
                   : "see on the subnet manager why it does not activate this port (`sminfo`, its "
                     "log)";
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

void judge_port(const Case& c, const RdmaNode& one, const Idle& idle, Judge& judge) {
  const bool manager = waits_for_manager(idle);
  const bool alone = one.hcas->used.empty() && !idle.twin.empty();
  const std::string name = port_text(idle.device->name, idle.port->number);
  Finding finding{
      .code = manager ? "rdma-port-init" : "rdma-port-down",
      .severity = capped(c, alone ? Severity::blocker : Severity::degraded),
      .certainty = idle.named ? Certainty::proved : Certainty::likely,
      .symptom = alone ? Symptom::hang : Symptom::slow,
      .subjects = {.nodes = {one.node->host},
                   .devices = {one.node->host + "/" + idle.device->name}},
      .summary = fmt::format("port {} of {} is {}{}", name, one.node->host, state_text(*idle.port),
                             idle.twin.empty() ? ", though NCCL_IB_HCA names it"
                                               : ", the same one of " + idle.twin + " is ACTIVE")};
  finding.evidence = {{.node = one.node->host,
                       .fact = "rdma." + name + ".state",
                       .observed = state_text(*idle.port),
                       .expected = "ACTIVE",
                       .command = "cat " +
                                  port_file(idle.device->name, idle.port->number, "state") +
                                  "; ibstat " + shell_quote(idle.device->name)}};
  if (manager && idle.port->sm_lid == 0) {
    finding.evidence.push_back(
        {.node = one.node->host,
         .fact = "rdma." + name + ".sm_lid",
         .observed = "0: no subnet manager was here",
         .expected = "the address of one",
         .command = "cat " + port_file(idle.device->name, idle.port->number, "sm_lid")});
  }
  finding.fix = {mend(one, idle)};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  for (const RdmaNode& one : nodes) {
    for (const Idle& idle : idle_ports(nodes, one)) judge_port(c, one, idle, judge);
  }
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
        "that nobody counts on (not named in NCCL_IB_HCA, and down on all nodes) are not meant.",
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
    .fix = "Start opensm on one host of the fabric, or the subnet manager of the switch.",
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
