// RDMA cards of one model have one firmware on all nodes.
#include <distdoctor/check.h>

#include "chosen.h"

#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

struct Card {
  const NodeFacts* node;
  const RdmaDevice* device;

  [[nodiscard]] const std::string& firmware() const { return device->firmware; }
};
using Cards = std::vector<Card>;

// By board id (PSID), which says more than the model: firmware is made for it.
std::map<std::string, Cards> cards_in_use(const std::vector<RdmaNode>& nodes) {
  std::map<std::string, Cards> boards;
  for (const RdmaNode& one : nodes) {
    for (const HcaChoice& hca : one.hcas->used) {
      const RdmaDevice* device = find_rdma_device(*one.rdma, hca.device);
      if (device == nullptr || device->board.empty() || device->firmware.empty()) continue;
      Cards& cards = boards[device->board];
      if (std::ranges::find(cards, device, &Card::device) == cards.end()) {
        cards.push_back({one.node, device});
      }
    }
  }
  return boards;
}

Evidence evidence_of(const Card& card, const std::string& expected) {
  return {
      .node = card.node->host,
      .fact = fmt::format("rdma.{}.firmware", card.device->name),
      .observed = card.device->firmware,
      .expected = expected,
      .command = "cat " + shell_quote("/sys/class/infiniband/" + card.device->name + "/fw_ver")};
}

// Of each node one row, of its first such card.
void add_rows(const Cards& cards, const std::string& expected, Finding& finding) {
  std::vector<std::string>& hosts = finding.subjects.nodes;
  for (const Card& card : cards) {
    if (std::ranges::find(hosts, card.node->host) != hosts.end()) continue;
    hosts.push_back(card.node->host);
    finding.evidence.push_back(evidence_of(card, expected));
  }
}

void judge_board(const std::string& board, const Cards& cards, Judge& judge) {
  const auto usual = usual_value(cards, &Card::firmware);
  if (!usual) return;
  const Cards odd = odd_ones_out(cards, usual->value, &Card::firmware);
  if (odd.empty()) return;
  Finding finding{.code = "rdma-firmware-differs",
                  .severity = Severity::notice,
                  .certainty = Certainty::possible,
                  .symptom = Symptom::slow,
                  .summary = ""};
  add_rows(odd, usual->value, finding);
  finding.summary = fmt::format(
      "{} of {} cards of board {} in use have other firmware than {}: on "
      "{}",
      odd.size(), cards.size(), board, usual->value, fmt::join(finding.subjects.nodes, ", "));
  if (!usual->clear) {  // nobody is the odd one
    add_rows(odd_ones_out(cards, odd.front().firmware(), &Card::firmware), odd.front().firmware(),
             finding);
  }
  finding.fix = {{.node = "*",
                  .kind = Fix::Kind::manual,
                  .text = "when the nodes are next maintained, give all cards of this board one "
                          "firmware; until then look here first if only these nodes fail"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (one_alone(nodes, judge)) return;
  for (const auto& [board, cards] : cards_in_use(nodes)) judge_board(board, cards, judge);
}

constexpr Page kPage{
    .meaning =
        "Cards of one model (the board id is the same) that the job uses have different firmware. "
        "They talk to each other; adaptive routing, congestion control and the defaults of links "
        "may differ, so that it is a difference to look at when only some nodes fail or are slow.",
    .confirm = "`cat /sys/class/infiniband/*/fw_ver` on each node; `ibv_devinfo | grep fw_ver`.",
    .fix = "Bring all cards to one version when the nodes are next maintained (`mlxfwmanager`).",
    .verify = "The command prints one version everywhere."};
constexpr Code kCodes[] = {{.id = "rdma-firmware-differs",
                            .fault_class = FaultClass::driver_mismatch,
                            .worst = Severity::notice,
                            .title = "RDMA cards of one model have different firmware",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check rdma_firmware_differs{.title = "RDMA cards of one model have one firmware",
                                         .codes = kCodes,
                                         .run = run,
                                         .needs = Needs::rdma};

}  // namespace distdoctor::checks
