// Two InfiniBand ports talk only within a partition that both are in, one of them as full member.
#include <distdoctor/check.h>
#include <distdoctor/workers.h>

#include "chosen.h"

#include <cstdint>
#include <set>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

constexpr std::uint16_t kFull = 0x8000;  // InfiniBand Architecture Specification 1, 10.9.1.1

using Keys = std::set<std::uint16_t>;

struct Partition {
  const RdmaNode* one;
  const HcaChoice* hca;  // an example
  Keys keys;             // at NCCL's index, of all ports that it takes
};

// NCCL_IB_PKEY is an index into the table.
int index_of(const RdmaNode& one) {
  const Setting* setting = find_setting(*one.prediction, "NCCL_IB_PKEY");
  return setting == nullptr ? 0 : number(setting->value).value_or(-1);
}

// None where a port's table was not seen: what is missing there is not known.
std::optional<Partition> partition_of(const RdmaNode& one) {
  Partition partition{.one = &one, .hca = nullptr, .keys = {}};
  const int index = index_of(one);
  for (const HcaChoice& hca : one.hcas->used) {
    const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
    if (hca.roce || port == nullptr) continue;
    const auto key = std::ranges::find(port->pkeys, index, &Pkey::index);
    if (key == port->pkeys.end()) return std::nullopt;
    partition.keys.insert(key->key);
    if (partition.hca == nullptr) partition.hca = &hca;
  }
  if (partition.keys.empty()) return std::nullopt;
  return partition;
}

bool meet(std::uint16_t one, std::uint16_t other) {
  return ((one ^ other) & ~kFull & 0xffff) == 0 && ((one | other) & kFull) != 0;
}

bool any_meet(const Keys& one, const Keys& other) {
  return std::ranges::any_of(one, [&](std::uint16_t key) {
    return std::ranges::any_of(other, [&](std::uint16_t theirs) { return meet(key, theirs); });
  });
}

std::string text_of(const Keys& keys) {
  std::vector<std::string> all;
  for (const std::uint16_t key : keys) all.push_back(fmt::format("{:#06x}", key));
  return fmt::format("{}", fmt::join(all, ", "));
}

void judge_pair(const Case& c, const Partition& odd, const Partition& usual, Judge& judge) {
  const int index = index_of(*odd.one);
  Finding finding{.code = "rdma-pkey-mismatch",
                  .severity = capped(c, Severity::blocker),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {odd.one->node->host}},
                  .summary = fmt::format("{} is in partition {}, {} in {}: their InfiniBand ports "
                                         "share none with a full member",
                                         odd.one->node->host, text_of(odd.keys),
                                         usual.one->node->host, text_of(usual.keys))};
  for (const Partition* side : {&odd, &usual}) {
    const Partition& other = side == &odd ? usual : odd;
    finding.evidence.push_back(
        {.node = side->one->node->host,
         .fact = fmt::format("rdma.pkeys[{}]", index_of(*side->one)),
         .observed = text_of(side->keys),
         .expected = "a partition of " + other.one->node->host + " (" + text_of(other.keys) + ")" +
                     (odd.keys == usual.keys ? " with bit 0x8000" : ""),
         .command = "cat " +
                    port_file(side->hca->device, side->hca->port, fmt::format("pkeys/{}", index))});
  }
  finding.fix = {{.node = odd.one->node->host,
                  .kind = Fix::Kind::manual,
                  .text = "set NCCL_IB_PKEY to the index of the common partition where the table "
                          "has it; else the subnet manager's partitions.conf decides"}};
  judge.report(std::move(finding));
}

// `usual`: whom most others can talk to.
const Partition* centre_of(const std::vector<Partition>& all) {
  const Partition* best = nullptr;
  std::ptrdiff_t most = -1;
  for (const Partition& one : all) {
    const auto met = std::ranges::count_if(
        all, [&](const Partition& other) { return any_meet(one.keys, other.keys); });
    if (met > most) {
      best = &one;
      most = met;
    }
  }
  return best;
}

void run(const Case& c, Judge& judge) {
  std::vector<Partition> all;
  const auto nodes = rdma_nodes(c, judge);
  for (const RdmaNode& one : nodes) {
    if (auto partition = partition_of(one)) all.push_back(*std::move(partition));
  }
  const Partition* usual = centre_of(all);
  for (const Partition& one : all) {
    if (&one != usual && !any_meet(one.keys, usual->keys)) judge_pair(c, one, *usual, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "Each packet carries a partition key, and a port drops what is of a partition that it is "
        "not in. Two limited members (bit 0x8000 not set) do not talk to each other either. NCCL "
        "takes the key at index NCCL_IB_PKEY, 0 by default. Connections are set up, and then "
        "retries run out: `status=IBV_WC_RETRY_EXC_ERR(12)`.",
    .confirm = "`cat /sys/class/infiniband/mlx5_0/ports/1/pkeys/0` on both nodes.",
    .fix =
        "Set NCCL_IB_PKEY to the index of the common partition, or make the nodes members of one "
        "in the subnet manager's partitions.conf.",
    .verify = "`ib_write_bw` runs between the two ports."};
constexpr Code kCodes[] = {{.id = "rdma-pkey-mismatch",
                            .fault_class = FaultClass::ib_fabric_partition,
                            .worst = Severity::blocker,
                            .title = "InfiniBand ports share no partition",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check rdma_pkey{.title = "The InfiniBand ports share a partition",
                             .codes = kCodes,
                             .run = run,
                             .needs = Needs::rdma};

}  // namespace distdoctor::checks
