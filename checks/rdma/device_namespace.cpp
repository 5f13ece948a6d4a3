// In RDMA's exclusive mode a device is seen in one network namespace alone: a container with a
// network of its own does not even find it in sysfs (rdma-system(8), kernel 5.1 and later).
#include <distdoctor/check.h>

#include "chosen.h"

#include <cstdint>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

// --- cards that ought to be RDMA devices ---

const PciDevice* find_card(const NodeFacts& node, std::string_view address) {
  if (!node.pci.known() || address.empty()) return nullptr;
  const auto found = std::ranges::find(node.pci->devices, address, &PciDevice::address);
  return found == node.pci->devices.end() ? nullptr : &*found;
}

// The same model is an RDMA device on another node.
bool is_rdma_elsewhere(const std::vector<RdmaNode>& nodes, const PciDevice& card) {
  return std::ranges::any_of(nodes, [&](const RdmaNode& one) {
    return std::ranges::any_of(one.rdma->devices, [&](const RdmaDevice& device) {
      const PciDevice* other = find_card(*one.node, device.pci);
      return other != nullptr && other->vendor == card.vendor && other->device == card.device &&
             other->driver == card.driver;
    });
  });
}

// With their driver at work: of InfiniBand, or of a model that others use so.
std::vector<std::string> hidden_cards(const std::vector<RdmaNode>& nodes, const Pci& pci) {
  constexpr std::uint32_t kInfiniband = 0x0207;
  std::vector<std::string> cards;
  for (const PciDevice& card : pci.devices) {
    if (verbs_provider_of(card.driver).empty()) continue;
    if (card.device_class >> 8U == kInfiniband || is_rdma_elsewhere(nodes, card)) {
      cards.push_back(card.address);
    }
  }
  return cards;
}

// --- the finding ---

void report(const Case& c,
            const std::vector<RdmaNode>& nodes,
            const RdmaNode& one,
            const std::vector<std::string>& cards,
            Judge& judge) {
  const NodeFacts& node = *one.node;
  const bool others_use = any_used(nodes);
  const Severity severity = capped(c, others_use ? Severity::blocker : Severity::degraded);
  // On a host the driver's RDMA half (mlx5_ib) may just not be loaded.
  const bool contained = !container_of(node).empty();
  Finding finding{
      .code = "rdma-device-netns",
      .severity = capped_by_context(severity, node.context),
      .certainty = contained ? Certainty::likely : Certainty::possible,
      .symptom = others_use ? Symptom::hang : Symptom::slow,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("{} has RDMA cards ({}) and sees no RDMA device: each belongs to one "
                             "network namespace (exclusive mode), {}",
                             node.host, fmt::join(cards, ", "),
                             contained ? "and that is not this container's"
                                       : "perhaps another one, if their driver is loaded whole")};
  finding.evidence = {{.node = node.host,
                       .fact = "rdma.namespace_mode",
                       .observed = "exclusive, and no device in /sys/class/infiniband",
                       .expected = "the devices of " + std::string(cards.front()),
                       .context = std::string(slug(node.context)),
                       .command = "rdma system; rdma dev; ls /sys/class/infiniband; lspci -s " +
                                  shell_quote(cards.front())}};
  finding.fix = {{.node = node.host,
                  .kind = Fix::Kind::manual,
                  .text =
                      "start the container in the host's network (docker --network=host, "
                      "Kubernetes hostNetwork: true), or give its namespace the device, on the "
                      "host: `rdma dev set mlx5_0 netns ...` (the RDMA CNI plugin does so). For "
                      "all: `options ib_core netns_mode=1` in /etc/modprobe.d, from the next "
                      "boot on"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (one_alone(nodes, judge)) return;
  bool exclusive = nodes.empty();
  for (const RdmaNode& one : nodes) {
    if (one.rdma->namespace_mode != "exclusive") continue;
    exclusive = true;
    if (!one.rdma->devices.empty() || !one.hcas->disabled_by.empty()) continue;
    const Pci* pci = judge.see(*one.node, "pci", one.node->pci);
    const auto cards = pci == nullptr ? std::vector<std::string>{} : hidden_cards(nodes, *pci);
    if (!cards.empty()) report(c, nodes, one, cards, judge);
  }
  if (!exclusive) judge.skip("RDMA devices are not kept to one network namespace");
}

constexpr Page kPage{
    .meaning =
        "`rdma system` says `netns exclusive`: the kernel then shows an RDMA device in one network "
        "namespace alone, at first the host's. A container with a network of its own has no "
        "/sys/class/infiniband/mlx5_0, and libibverbs lists nothing, though the card and its "
        "driver are there and /dev/infiniband may be. NCCL says `NET/IB : No device found` and "
        "goes on over sockets.",
    .confirm =
        "`rdma system` and `rdma dev` inside the container, then on the host; `cat "
        "/sys/module/ib_core/parameters/netns_mode` prints `N`.",
    .fix =
        "The host's network for the container, or the device for the container's namespace: `rdma "
        "dev set mlx5_0 netns NAME`. `rdma system set netns shared` works only while no other "
        "network namespace exists; `options ib_core netns_mode=1` in /etc/modprobe.d sets it at "
        "boot.",
    .verify = "`rdma dev` inside the container lists the device; `ibv_devinfo` opens it."};
constexpr std::string_view kCauses[] = {"rdma-hca-sets-differ", "net-slow-interface"};
constexpr Code kCodes[] = {{.id = "rdma-device-netns",
                            .fault_class = FaultClass::container_rdma_netns,
                            .worst = Severity::blocker,
                            .title = "The RDMA devices are in another network namespace",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check rdma_device_namespace{
    .title = "RDMA devices are in the job's network namespace", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
