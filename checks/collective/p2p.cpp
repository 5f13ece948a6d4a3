// GPUs of a node reach each other's memory, and faster than by way of the CPU's.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>

#include "isolations.h"

#include <fmt/format.h>

#include <algorithm>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

// Bridges that send what goes between GPUs up to the CPU, below an IOMMU that translates it.
std::vector<const PciDevice*> redirecting(const NodeFacts& node) {
  std::vector<const PciDevice*> ports;
  if (!node.pci.known()) return ports;
  for (const PciDevice& device : node.pci->devices) {
    if (device.acs_redirects == true) ports.push_back(&device);
  }
  return ports;
}

void add_bus(const NodeFacts& node, Finding& finding) {
  const auto ports = redirecting(node);
  if (!ports.empty()) {
    finding.evidence.push_back({.node = node.host,
                                .fact = "ACS of " + ports.front()->address,
                                .observed = fmt::format("redirects, as {} bridge{} do",
                                                        ports.size(), ports.size() == 1 ? "" : "s"),
                                .expected = "no ReqRedir, no CmpltRedir",
                                .command = fmt::format("lspci -vvv -s {} | grep ACSCtl",
                                                       shell_quote(ports.front()->address))});
  }
  if (node.pci.known() && node.pci->iommu == "translated") {
    finding.evidence.push_back({.node = node.host,
                                .fact = "IOMMU",
                                .observed = "translates the GPUs' addresses",
                                .expected = "passes them on, or is off",
                                .command = "cat /sys/kernel/iommu_groups/*/type | sort | uniq -c"});
  }
}

// What to do for good, by what the bus shows.
Fix for_good(const NodeFacts& node) {
  const bool guest = node.pci.known() && node.pci->virtual_machine;
  const bool bus =
      !redirecting(node).empty() || (node.pci.known() && node.pci->iommu == "translated");
  if (guest) {
    return by_hand(node.host,
                   "whoever runs the host has to let the GPUs talk (ACS, ATS, one switch)");
  }
  if (bus) {
    return by_hand(node.host, fmt::format("for good: boot {} with iommu=pt and switch ACS off in "
                                          "its BIOS; where guests share devices ACS has to stay",
                                          node.host));
  }
  return by_hand(node.host,
                 "for good: a newer driver, or what the machine's maker says on peer-to-peer "
                 "access; `nvidia-smi topo -p2p r` shows what the driver promises");
}

void add_all(const Case& c, const Isolation& found, const std::string& cost, Finding& finding) {
  for (const NodeFacts* node : nodes_of(c, found)) add_bus(*node, finding);
  add_workaround(found, cost, finding);
  for (const NodeFacts* node : nodes_of(c, found)) finding.fix.push_back(for_good(*node));
}

void report_far(const Case& c, const Isolation& found, Judge& judge) {
  Finding finding = about(c, found, "collective-p2p-unused",
                          fmt::format("NCCL does not use peer-to-peer access that is there{}{}",
                                      where_text(found), speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  add_workaround(found, "peer-to-peer access also between GPUs that are far apart", finding);
  judge.report(std::move(finding));
}

void report(const Case& c, const Isolation& found, Judge& judge) {
  const bool both = found.workaround.contains("NCCL_SHM_DISABLE");
  const char* code = is_slow(found) ? "collective-p2p-slow" : "collective-p2p-broken";
  Finding finding =
      about(c, found, code,
            fmt::format("peer-to-peer access{} {}{}{}", where_text(found), ailment_text(found),
                        speeds_text(found), both ? "; so does the way by shared memory" : ""));
  if (!add_proof(c, found, finding)) return;
  const std::string cost =
      both ? "GPUs of a node then talk by way of the network: slow, but it works"
           : "GPUs of a node then talk by way of the CPU's memory: half of the "
             "speed over PCIe, a small part of it over NVLink";
  add_all(c, found, is_slow(found) ? "faster here, by way of the CPU's memory" : cost, finding);
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Isolation* found : isolations_of(c, {Layer::p2p})) {
    if (found->workaround.contains("NCCL_P2P_LEVEL")) {
      report_far(c, *found, judge);
    } else {
      report(c, *found, judge);
    }
  }
}

// --- the catalogue ---

constexpr std::string_view kConfirm =
    "`NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 256M -f 8 -g 2` of nccl-tests with and without "
    "NCCL_P2P_DISABLE=1; NVIDIA's p2pBandwidthLatencyTest shows the same without NCCL.";
constexpr Page kBrokenPage{
    .meaning =
        "The same all-reduce does not work with peer-to-peer access between GPUs, and works "
        "without "
        "it; both were run twice. CUDA says that the access is there, but what is written arrives "
        "wrong, or never. ACS on PCIe bridges with an IOMMU that translates addresses is the usual "
        "cause, cards whose driver promises what they cannot do the next one.",
    .confirm = kConfirm,
    .fix =
        "NCCL_P2P_DISABLE=1 for now. For good: `iommu=pt` on the kernel's command line, ACS off in "
        "the BIOS, a newer driver.",
    .verify = "The all-reduce works without NCCL_P2P_DISABLE."};
constexpr Page kSlowPage{
    .meaning =
        "Peer-to-peer access works, but is slower than the way by the CPU's memory. Bridges send "
        "it up to the CPU (ACS), or the GPUs stand below different CPUs.",
    .confirm = kConfirm,
    .fix = "As for broken peer-to-peer access; until then NCCL_P2P_DISABLE=1 is the faster way.",
    .verify = "Peer-to-peer access is faster than NCCL_P2P_DISABLE=1."};
constexpr Page kFarPage{
    .meaning =
        "NCCL uses peer-to-peer access only between GPUs that stand near each other (PXB). Here "
        "it is faster over the greater distance, too.",
    .confirm = "all_reduce_perf with and without NCCL_P2P_LEVEL=SYS.",
    .fix = "NCCL_P2P_LEVEL=SYS, on this kind of machine.",
    .verify = "NCCL_DEBUG=INFO prints `via P2P` where it printed `via SHM`."};
constexpr Code kCodes[] = {{.id = "collective-p2p-broken",
                            .fault_class = FaultClass::p2p_broken_acs,
                            .worst = Severity::blocker,
                            .title = "Peer-to-peer access between GPUs is broken",
                            .causes = {},
                            .page = kBrokenPage},
                           {.id = "collective-p2p-slow",
                            .fault_class = FaultClass::p2p_broken_acs,
                            .worst = Severity::degraded,
                            .title = "Peer-to-peer access between GPUs is slow",
                            .causes = {},
                            .page = kSlowPage},
                           {.id = "collective-p2p-unused",
                            .fault_class = FaultClass::p2p_level,
                            .worst = Severity::degraded,
                            .title = "Peer-to-peer access is not used where it helps",
                            .causes = {},
                            .page = kFarPage}};

}  // namespace

extern const Check collective_p2p{
    .title = "GPUs reach each other's memory", .codes = kCodes, .run = run, .needs = Needs::runs};

}  // namespace distdoctor::checks
