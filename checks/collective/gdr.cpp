// RDMA cards read and write GPU memory themselves (GPUDirect RDMA), rightly and to good effect.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>

#include "isolations.h"

#include <fmt/format.h>

#include <algorithm>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

void add_bus(const NodeFacts& node, Finding& finding) {
  if (!node.pci.known()) return;
  const auto redirects = std::ranges::count_if(
      node.pci->devices, [](const PciDevice& device) { return device.acs_redirects == true; });
  if (redirects > 0) {
    finding.evidence.push_back({.node = node.host,
                                .fact = "ACS of PCIe bridges",
                                .observed = fmt::format("{} redirect", redirects),
                                .expected = "none between GPUs and RDMA cards",
                                .command = "lspci -vvv | grep ACSCtl"});
  }
  if (node.pci->virtual_machine) {
    finding.evidence.push_back({.node = node.host,
                                .fact = "virtual machine",
                                .observed = "yes: the host decides what a card may reach",
                                .expected = "ATS on the cards, or bare metal",
                                .command = "systemd-detect-virt"});
  }
}

void report(const Case& c, const Isolation& found, Judge& judge) {
  Finding finding = about(c, found, "collective-gdr-broken",
                          fmt::format("GPUDirect RDMA{} {}{}", where_text(found),
                                      ailment_text(found), speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  add_workaround(found,
                 "data between nodes then goes through the CPU's memory: about half of the speed "
                 "of fast cards, and load on the CPU",
                 finding);
  for (const NodeFacts* node : nodes_of(c, found)) {
    add_bus(*node, finding);
    finding.fix.push_back(
        by_hand(node->host,
                "for good: ACS off on the bridges above GPUs and cards (in a guest: ATS on, by "
                "whoever runs the host), nvidia_peermem of the driver's own version"));
  }
  judge.report(std::move(finding));
}

void report_unused(const Case& c, const Isolation& found, Judge& judge) {
  Finding finding = about(c, found, "collective-gdr-unused",
                          fmt::format("NCCL does not use GPUDirect RDMA that is there{}{}",
                                      where_text(found), speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  add_workaround(found, "GPUDirect RDMA also where GPU and card stand far apart", finding);
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Isolation* found : isolations_of(c, {Layer::gdr})) {
    const auto level = found->workaround.find("NCCL_NET_GDR_LEVEL");
    const bool more = level != found->workaround.end() && level->second != "LOC";
    more ? report_unused(c, *found, judge) : report(c, *found, judge);
  }
}

// --- the catalogue ---

constexpr Page kBrokenPage{
    .meaning =
        "With GPUDirect RDMA a card reads and writes GPU memory over PCIe. The same all-reduce "
        "does not work so, or crawls, and works through the CPU's memory; both were run twice. ACS "
        "or an IOMMU between GPU and card, a guest whose host does not allow it, and a mismatched "
        "nvidia_peermem are the usual causes.",
    .confirm =
        "all_reduce_perf over both nodes with and without NCCL_NET_GDR_LEVEL=LOC; `lspci -vvv | "
        "grep ACSCtl` as root; `ib_write_bw --use_cuda=0` between the nodes.",
    .fix = "ACS off above GPUs and cards, ATS on in guests. NCCL_NET_GDR_LEVEL=LOC until then.",
    .verify = "The all-reduce works, and channels say `/GDRDMA`."};
constexpr Page kUnusedPage{
    .meaning =
        "NCCL uses GPUDirect RDMA only where GPU and card stand below one PCIe root port. Here it "
        "is faster over the greater distance, too.",
    .confirm = "all_reduce_perf with and without NCCL_NET_GDR_LEVEL=SYS.",
    .fix = "NCCL_NET_GDR_LEVEL=SYS, on this kind of machine.",
    .verify = "NCCL_DEBUG=INFO prints channels with `/GDRDMA`."};
constexpr Code kCodes[] = {{.id = "collective-gdr-broken",
                            .fault_class = FaultClass::gdr_broken_acs,
                            .worst = Severity::blocker,
                            .title = "GPUDirect RDMA is broken",
                            .causes = {},
                            .page = kBrokenPage},
                           {.id = "collective-gdr-unused",
                            .fault_class = FaultClass::gdr_disabled,
                            .worst = Severity::degraded,
                            .title = "GPUDirect RDMA is not used where it helps",
                            .causes = {},
                            .page = kUnusedPage}};

}  // namespace

extern const Check collective_gdr{.title = "RDMA cards and GPUs work together",
                                  .codes = kCodes,
                                  .run = run,
                                  .needs = Needs::runs};

}  // namespace distdoctor::checks
