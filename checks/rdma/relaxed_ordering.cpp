// The RDMA cards may reorder their writes (PCIe relaxed ordering), and NCCL lets them.
#include <distdoctor/check.h>

#include "chosen.h"

#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

// --- cards that differ ---

// A card that NCCL uses and whose bit is known.
struct Card {
  const NodeFacts* node;
  const RdmaDevice* device;
  const PciDevice* pci;
  bool on;
};

// A hypervisor shows its guests what it likes, and of a virtual function the bit says nothing.
bool tells(const NodeFacts& node) {
  return node.pci.known() && !node.pci->virtual_machine;
}

void note_denied(const NodeFacts& node, Judge& judge) {
  judge.miss({.node = node.host,
              .fact = "pci.relaxed_ordering",
              .why = {Why::denied, "only root may read a card's PCI capabilities"}});
}

std::vector<Card> cards_of(const RdmaNode& one, Judge& judge) {
  std::vector<Card> cards;
  if (!tells(*one.node)) return cards;
  for (const HcaChoice& hca : one.hcas->used) {
    const RdmaDevice* device = find_rdma_device(*one.rdma, hca.device);
    if (device == nullptr || device->pci.empty()) continue;
    const auto& all = one.node->pci->devices;
    const auto pci = std::ranges::find(all, device->pci, &PciDevice::address);
    if (pci == all.end()) continue;
    const auto on = pci->relaxed_ordering;
    if (on) cards.push_back({one.node, device, &*pci, *on});
    if (!on && !one.node->pci->config_readable) note_denied(*one.node, judge);
  }
  return cards;
}

// The same card on the nodes: name and model.
using Twins = std::map<std::string, std::vector<Card>>;
Twins twins_of(const std::vector<RdmaNode>& nodes, Judge& judge) {
  Twins twins;
  for (const RdmaNode& one : nodes) {
    for (const Card& card : cards_of(one, judge)) {
      twins[fmt::format("{} {:04x}:{:04x}", card.device->name, card.pci->vendor, card.pci->device)]
          .push_back(card);
    }
  }
  return twins;
}

bool is_off(const Card& card) {
  return !card.on;
}

// Off where as many others have it on; where most have it off, that is how they are meant.
std::vector<Card> odd_cards(const std::vector<RdmaNode>& nodes, Judge& judge) {
  std::vector<Card> odd;
  for (const auto& [name, cards] : twins_of(nodes, judge)) {
    const auto off = static_cast<std::size_t>(std::ranges::count_if(cards, is_off));
    if (2 * off > cards.size()) continue;
    std::ranges::copy_if(cards, std::back_inserter(odd), is_off);
  }
  return odd;
}

template <class T>
void add_once(const T& value, std::vector<T>& all) {
  if (std::ranges::find(all, value) == all.end()) all.push_back(value);
}

void report_cards(const Case& c, const std::vector<Card>& odd, Judge& judge) {
  Finding finding{.code = "rdma-relaxed-ordering-differs",
                  .severity = capped(c, Severity::notice),
                  .certainty = Certainty::possible,
                  .symptom = Symptom::slow,
                  .summary = ""};
  for (const Card& card : odd) {
    const std::string& host = card.node->host;
    add_once(host, finding.subjects.nodes);
    finding.subjects.devices.push_back(host + "/" + card.device->name);
    finding.evidence.push_back({.node = host,
                                .fact = "pci." + card.pci->address + ".relaxed_ordering",
                                .observed = "off (" + card.device->name + ")",
                                .expected = "on, as at the same card of other nodes",
                                .command = "lspci -s " + shell_quote(card.pci->address) +
                                           " -vv | grep RlxdOrd   # as root"});
  }
  finding.summary = fmt::format(
      "PCIe relaxed ordering is off at RDMA cards of {}, and on at the same cards of others",
      fmt::join(finding.subjects.nodes, ", "));
  for (const std::string& host : finding.subjects.nodes) {
    const Card& card =
        *std::ranges::find(odd, host, [](const Card& one) { return one.node->host; });
    finding.fix.push_back(
        {.node = host,
         .kind = Fix::Kind::manual,
         .text = fmt::format("set \"PCI Relaxed Ordering\" in the BIOS as on the other nodes; "
                             "`setpci -s {} CAP_EXP+8.w=0x10:0x10` does it until the next reset, "
                             "while no job uses the card (`dmesg | grep -i 'relaxed ordering'`: "
                             "where Linux turned it off, the root port cannot do it)",
                             shell_quote(card.pci->address))});
  }
  judge.report(std::move(finding));
}

// --- NCCL's switch ---

// Set to 0, and not what NCCL reads as 0 by accident.
bool switched_off(const RdmaNode& one) {
  const Setting* setting = find_setting(*one.prediction, "NCCL_IB_PCI_RELAXED_ORDERING");
  return setting != nullptr && setting->value == "0";
}

bool hardware(const RdmaNode& one) {
  return std::ranges::any_of(one.hcas->used, [&](const HcaChoice& hca) {
    const RdmaDevice* device = find_rdma_device(*one.rdma, hca.device);
    return device != nullptr && !in_software(*device);
  });
}

void judge_switch(const Case& c, const std::vector<RdmaNode>& nodes, Judge& judge) {
  Finding finding{.code = "rdma-relaxed-ordering-off",
                  .severity = capped(c, Severity::notice),
                  .certainty = Certainty::possible,
                  .symptom = Symptom::slow,
                  .summary = ""};
  for (const RdmaNode& one : nodes) {
    const Pci* pci =
        switched_off(one) && hardware(one) ? judge.see(*one.node, "pci", one.node->pci) : nullptr;
    if (pci == nullptr || !pci->virtual_machine) continue;
    finding.subjects.nodes.push_back(one.node->host);
    finding.evidence.push_back(
        {.node = one.node->host,
         .fact = "NCCL_IB_PCI_RELAXED_ORDERING",
         .observed = said(*one.prediction, "NCCL_IB_PCI_RELAXED_ORDERING"),
         .expected = "unset in a virtual machine: NCCL uses it where it can",
         .command = see_setting(*one.prediction, "NCCL_IB_PCI_RELAXED_ORDERING")});
  }
  if (finding.evidence.empty()) return;
  finding.summary = fmt::format(
      "NCCL_IB_PCI_RELAXED_ORDERING=0 on {}, which are virtual machines: RDMA between a GPU and a "
      "card is much slower there without it",
      fmt::join(finding.subjects.nodes, ", "));
  finding.fix = {{.node = "*",
                  .kind = Fix::Kind::env,
                  .env = {{"NCCL_IB_PCI_RELAXED_ORDERING", std::nullopt}},
                  .text = "keep it only where the job fails without it"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (one_alone(nodes, judge) || all_unused(nodes, judge)) return;
  for (const RdmaNode& one : nodes) {
    if (!one.hcas->used.empty()) judge.see(*one.node, "pci", one.node->pci);
  }
  const bool any = std::ranges::any_of(nodes, [&](const RdmaNode& one) {
    return switched_off(one) || !cards_of(one, judge).empty();
  });
  if (!any) judge.skip("no RDMA card in use tells of relaxed ordering");
  const auto odd = odd_cards(nodes, judge);
  if (!odd.empty()) report_cards(c, odd, judge);
  judge_switch(c, nodes, judge);
}

constexpr Page kDiffersPage{
    .meaning =
        "With relaxed ordering a card's writes may overtake one another on their way to memory, "
        "and NCCL asks for it where it can. Cards that may not are slower on some platforms (AMD "
        "EPYC, virtual machines) and the same on others. Here the nodes differ, which is rarely "
        "meant: a BIOS that was reset, or another version of it.",
    .confirm =
        "As root: `lspci -s ADDRESS -vv | grep RlxdOrd`, `RlxdOrd-` on one and `RlxdOrd+` "
        "on the others; `ib_write_bw` between the pairs.",
    .fix =
        "\"PCI Relaxed Ordering\" in the BIOS. `setpci -s ADDRESS CAP_EXP+8.w=0x10:0x10` is for a "
        "test. mlxconfig's PCI_WR_ORDERING is another thing: 1 forces it on all writes, which "
        "breaks programs that did not ask for it, such as NCCL before 2.8; leave it at 0.",
    .verify = "`lspci -vv` shows `RlxdOrd+` on all nodes."};
constexpr Page kOffPage{
    .meaning =
        "NCCL_IB_PCI_RELAXED_ORDERING=0 tells NCCL not to ask for relaxed ordering, by which its "
        "user guide sets great store in virtual machines. Without the variable NCCL uses it where "
        "card and libibverbs can.",
    .confirm = "NCCL_DEBUG=INFO prints `NET/IB : Using ...` without `[RO]`.",
    .fix = "Unset it, in the job's environment and in nccl.conf.",
    .verify = "`NET/IB : Using ... [RO]`, and the job is as fast as it was meant to be."};
constexpr Code kCodes[] = {
    {.id = "rdma-relaxed-ordering-differs",
     .fault_class = FaultClass::nic_relaxed_ordering,
     .worst = Severity::notice,
     .title = "PCIe relaxed ordering is on for RDMA cards of some nodes only",
     .causes = {},
     .page = kDiffersPage},
    {.id = "rdma-relaxed-ordering-off",
     .fault_class = FaultClass::nic_relaxed_ordering,
     .worst = Severity::notice,
     .title = "NCCL does without PCIe relaxed ordering in virtual machines",
     .causes = {},
     .page = kOffPage}};

}  // namespace

extern const Check rdma_relaxed_ordering{.title = "RDMA cards may use PCIe relaxed ordering",
                                         .codes = kCodes,
                                         .run = run,
                                         .needs = Needs::rdma};

}  // namespace distdoctor::checks
