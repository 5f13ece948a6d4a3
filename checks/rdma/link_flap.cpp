// The links of the RDMA ports that the job uses stay up, as the kernel's log and counters tell.
#include <distdoctor/check.h>
#include <distdoctor/link_flaps.h>

#include "chosen.h"

#include <set>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

struct Losses : LinkLosses {
  std::string fact = {};     // that counted them
  std::string command = {};  // to read it
};

// The counter of the port; of RoCE also that of its interface, which is the one that some drivers
// keep up.
void add_port(const RdmaNode& one, const RdmaDevice& device, const RdmaPort& port, Losses& losses) {
  const EarlierCounters& earlier = *one.node->earlier;
  const auto downed = port.counters.find("link_downed");
  const auto gain =
      gained(earlier.link_downed, fmt::format("{}/{}", device.name, port.number),
             downed == port.counters.end() ? std::nullopt : std::optional(downed->second));
  if (gain <= losses.counted) return;
  losses.counted = gain;
  losses.fact = fmt::format("rdma.{}.link_downed", port_text(device.name, port.number));
  losses.command = "cat " + port_file(device.name, port.number, "counters/link_downed");
}

void add_interface(const RdmaNode& one, const RdmaDevice& device, Losses& losses) {
  if (losses.counted > 0 || !one.node->links.known()) return;
  const auto link = std::ranges::find(*one.node->links, device.name, &Link::rdma_device);
  if (link == one.node->links->end() || link->kind == LinkKind::infiniband) return;
  losses.counted = gained(one.node->earlier->carrier_downs, link->name, link->carrier_downs);
  losses.of_interface = losses.counted > 0;
  losses.fact = fmt::format("net.{}.carrier_downs", link->name);
  losses.command = see_carrier_downs(link->name);
}

// "mlx5_core 0000:18:00.0 eth2: Link down": the driver names its PCI device, and InfiniBand ports
// have netdevs, too (IPoIB).
bool is_of(const RdmaDevice& device, std::string_view text) {
  return !device.pci.empty() && text.find(device.pci) != std::string_view::npos;
}

Losses losses_of(const RdmaNode& one,
                 const RdmaDevice& device,
                 const EarlierCounters* earlier,
                 const KernelLog* log) {
  Losses losses;
  if (earlier != nullptr) {
    losses.counted_s = earlier->ago_s;
    for (const HcaChoice& hca : one.hcas->used) {
      const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
      if (hca.device == device.name && port != nullptr) add_port(one, device, *port, losses);
    }
    add_interface(one, device, losses);
  }
  if (log != nullptr) {
    add_logged(*log, [&](std::string_view text) { return is_of(device, text); }, losses);
  }
  return losses;
}

std::vector<Evidence> evidence_of(const std::string& host, const Losses& losses) {
  std::vector<Evidence> rows;
  if (losses.counted > 0) rows.push_back(counted_row(host, losses, losses.fact, losses.command));
  if (!losses.logged.empty()) rows.push_back(logged_row(host, losses));
  return rows;
}

void judge_device(const Case& c,
                  const RdmaNode& one,
                  const std::string& device,
                  const Losses& losses,
                  Judge& judge) {
  const bool again = flaps(losses);
  const std::string& host = one.node->host;
  Finding finding{.code = "rdma-link-flap",
                  .severity = capped(c, again ? Severity::degraded : Severity::notice),
                  .certainty = again ? Certainty::likely : Certainty::possible,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = {host}, .devices = {host + "/" + device}},
                  .summary = fmt::format("the link of {} on {} went down {}", device, host,
                                         losses_text(losses))};
  finding.evidence = evidence_of(host, losses);
  finding.fix = {{.node = host,
                  .kind = Fix::Kind::manual,
                  .text = "look at cable, transceiver and switch port (`mlxlink -d " + device +
                          " -c`); until then leave the port out with NCCL_IB_HCA on all nodes"}};
  judge.report(std::move(finding));
}

void judge_node(const Case& c, const RdmaNode& one, Judge& judge) {
  const EarlierCounters* earlier = settled_earlier(*one.node, judge);
  const KernelLog* log = judge.see(*one.node, "kernel_log", one.node->kernel_log);
  std::set<std::string> names;
  for (const HcaChoice& hca : one.hcas->used) names.insert(hca.device);
  for (const std::string& name : names) {
    const RdmaDevice* device = find_rdma_device(*one.rdma, name);
    if (device == nullptr) continue;
    const Losses losses = losses_of(one, *device, earlier, log);
    if (losses.any()) judge_device(c, one, name, losses, judge);
  }
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (all_unused(nodes, judge)) return;
  for (const RdmaNode& one : nodes) {
    if (!one.hcas->used.empty()) judge_node(c, one, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "The link of an RDMA port that the job uses went down and came up again: by the kernel's "
        "log of the last hour, or by what its counters gained since an earlier look (`check --save "
        "FILE`, later `check --since FILE`). While it is down NCCL's retries run out after some "
        "ten seconds (`Got completion ... status=IBV_WC_RETRY_EXC_ERR(12)`, `Got async event : "
        "port error`). Once is a notice, again and again is a fault. What a link does in the "
        "minutes after the node starts, or before it has been up for half a minute, does not "
        "count; neither do counters of congestion and retransmission, which rise on healthy "
        "fabrics.",
    .confirm =
        "`dmesg -T | grep -i link`; `cat /sys/class/infiniband/*/ports/1/counters/link_downed` "
        "twice, some minutes apart.",
    .fix = "Cable, transceiver or switch port: `mlxlink` shows their errors. Drain the node.",
    .verify = "link_downed no longer rises."};
constexpr Code kCodes[] = {{.id = "rdma-link-flap",
                            .fault_class = FaultClass::ib_link_flap,
                            .worst = Severity::degraded,
                            .title = "An RDMA link goes down and up",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check rdma_link_flap{
    .title = "RDMA links stay up", .codes = kCodes, .run = run, .needs = Needs::rdma};

}  // namespace distdoctor::checks
