// RDMA carries data between the nodes: no card, rail or plugin is in the way.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>

#include "isolations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

struct Kind {
  Layer layer;
  const char* code;
  std::string_view what;
  std::string_view cost;
  std::string_view for_good;
};

constexpr std::array<Kind, 4> kKinds = {
    {{Layer::ib, "collective-ib-broken", "RDMA between the nodes",
      "data then goes over TCP: a tenth of the speed of fast cards",
      "for good: `ibstat` and `rdma link` on the nodes, `ib_write_bw` between each two; cables, "
      "GIDs, partition and firmware of the cards"},
     {Layer::plugin, "collective-plugin-broken", "the network plugin",
      "NCCL's own RDMA transport is used then, or TCP where the cards need the plugin (EFA)",
      "for good: a plugin that was built for this NCCL, the same on all nodes"},
     {Layer::rail, "collective-rails-apart", "traffic between cards of different rails",
      "each card then talks to its like only; nothing is lost on a fabric made of rails",
      "keep the setting, or connect the rails"},
     {Layer::pxn, "collective-pxn", "the way by a neighbour's card (PXN)",
      "GPUs then send by far cards themselves",
      "for good: a newer NCCL; NVLinks of the nodes (`nvidia-smi nvlink -s`)"}}};

void report(const Case& c, const Kind& kind, const Isolation& found, Judge& judge) {
  Finding finding = about(c, found, kind.code,
                          fmt::format("{}{} {}{}", kind.what, where_text(found),
                                      ailment_text(found), speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  add_workaround(found, std::string(kind.cost), finding);
  finding.fix.push_back(by_hand("*", std::string(kind.for_good)));
  judge.report(std::move(finding));
}

void report_hca(const Case& c, const Isolation& found, Judge& judge) {
  // To keep one card out is one thing, to take another one than NCCL does is the other.
  const bool bad = found.workaround.contains("NCCL_IB_HCA") &&
                   found.workaround.at("NCCL_IB_HCA").starts_with("^");
  const std::string names = fmt::format("{}", fmt::join(found.names, ", "));
  Finding finding =
      bad ? about(c, found, "collective-hca-bad",
                  fmt::format("traffic by {}{} {}{}", names, where_text(found), ailment_text(found),
                              speeds_text(found)))
          : about(c, found, "collective-hca-wrong",
                  fmt::format("NCCL takes {}, though {} is {}{}", names,
                              settings_text(found.workaround),
                              is_slow(found) ? "faster" : "what works", speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  add_workaround(found, bad ? "without that card, hence with less bandwidth" : "the better card",
                 finding);
  if (bad) {
    finding.fix.push_back(by_hand(
        "*",
        fmt::format("look at {} on each node: cable, port errors (`rdma link`, `ibstat`), PCIe "
                    "width, the switch port",
                    names)));
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Kind& kind : kKinds) {
    for (const Isolation* found : isolations_of(c, {kind.layer})) report(c, kind, *found, judge);
  }
  for (const Isolation* found : isolations_of(c, {Layer::hca})) report_hca(c, *found, judge);
}

// --- the catalogue ---

constexpr std::string_view kVerify = "The all-reduce works at speed without the setting.";
constexpr Page kIbPage{
    .meaning =
        "The same all-reduce does not work by RDMA, and works over TCP; neither GPUDirect RDMA, "
        "nor a single card or a plugin alone is to blame. Both were run twice.",
    .confirm =
        "all_reduce_perf over the nodes with and without NCCL_NET=Socket NCCL_NET_PLUGIN=none; "
        "`ib_write_bw` between the nodes.",
    .fix = "The fabric: cables, GIDs, partitions, firmware. NCCL_NET=Socket until then.",
    .verify = kVerify};
constexpr Page kPluginPage{
    .meaning =
        "An external network plugin (libnccl-net.so) is in use. Without it the same all-reduce "
        "works; both were run twice.",
    .confirm = "all_reduce_perf with and without NCCL_NET_PLUGIN=none.",
    .fix = "A plugin of the version that this NCCL needs, the same on all nodes.",
    .verify = kVerify};
constexpr Page kRailPage{
    .meaning =
        "NCCL may send from one card to a card of another number on the other node. In a fabric "
        "that connects cards of one number only (rails) that never arrives.",
    .confirm =
        "all_reduce_perf with and without NCCL_CROSS_NIC=0; ping between cards of two rails.",
    .fix = "NCCL_CROSS_NIC=0.",
    .verify = "The all-reduce works with it on all nodes."};
constexpr Page kPxnPage{
    .meaning =
        "With PXN a GPU hands data to a neighbour by NVLink, whose card sends it. The same "
        "all-reduce works, or is faster, without.",
    .confirm = "all_reduce_perf with and without NCCL_PXN_DISABLE=1.",
    .fix = "NCCL_PXN_DISABLE=1; a newer NCCL.",
    .verify = kVerify};
constexpr Page kHcaBadPage{
    .meaning =
        "With this RDMA card the all-reduce does not work, or is slow; with all the others it "
        "works. Found by halving the list of cards, and run twice both ways.",
    .confirm = "all_reduce_perf with NCCL_IB_HCA=^=CARD and with NCCL_IB_HCA==CARD.",
    .fix = "Its cable, port, slot, firmware and switch port. NCCL_IB_HCA=^=CARD until then.",
    .verify = kVerify};
constexpr Page kHcaWrongPage{
    .meaning =
        "NCCL takes another card than the one that serves best: it stands further from the GPUs, "
        "is slower, or belongs to another network.",
    .confirm = "all_reduce_perf with and without NCCL_IB_HCA; `nvidia-smi topo -m`.",
    .fix = "NCCL_IB_HCA with the better card, whole names after a `=`.",
    .verify = "NCCL_DEBUG=INFO prints the better card in `NET/IB : Using`."};

constexpr Code kCodes[] = {{.id = "collective-ib-broken",
                            .fault_class = FaultClass::ib_broken,
                            .worst = Severity::blocker,
                            .title = "RDMA is broken while TCP works",
                            .causes = {},
                            .page = kIbPage},
                           {.id = "collective-plugin-broken",
                            .fault_class = FaultClass::plugin_mismatch,
                            .worst = Severity::blocker,
                            .title = "The network plugin is in the way",
                            .causes = {},
                            .page = kPluginPage},
                           {.id = "collective-rails-apart",
                            .fault_class = FaultClass::rail_topology,
                            .worst = Severity::blocker,
                            .title = "Rails do not reach each other",
                            .causes = {},
                            .page = kRailPage},
                           {.id = "collective-pxn",
                            .fault_class = FaultClass::pxn,
                            .worst = Severity::blocker,
                            .title = "PXN does harm",
                            .causes = {},
                            .page = kPxnPage},
                           {.id = "collective-hca-bad",
                            .fault_class = FaultClass::hca_bad_device,
                            .worst = Severity::blocker,
                            .title = "One RDMA card is bad",
                            .causes = {},
                            .page = kHcaBadPage},
                           {.id = "collective-hca-wrong",
                            .fault_class = FaultClass::topology_wrong_nic,
                            .worst = Severity::blocker,
                            .title = "NCCL takes the wrong RDMA card",
                            .causes = {},
                            .page = kHcaWrongPage}};

}  // namespace

extern const Check collective_rdma{.title = "RDMA carries data between the nodes",
                                   .codes = kCodes,
                                   .run = run,
                                   .needs = Needs::runs};

}  // namespace distdoctor::checks
