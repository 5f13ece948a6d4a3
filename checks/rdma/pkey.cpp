// Two InfiniBand ports talk only within a partition that both are in, one of them as full member.
#include <distdoctor/check.h>
#include <distdoctor/nccl_number.h>

#include "chosen.h"

#include <cstdint>
#include <set>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

constexpr std::uint16_t kFull = 0x8000;  // InfiniBand Architecture Specification 1, 10.9.1.1

using Keys = std::set<std::uint16_t>;

// NCCL_IB_PKEY is an index into the table; NCCL keeps sixteen bits of it (net_ib.cc,
// ncclIbCreateQp).
int index_of(const RdmaNode& one) {
  const Setting* setting = find_setting(*one.prediction, "NCCL_IB_PKEY");
  return setting == nullptr ? 0 : static_cast<int>(nccl_number(setting->value) & 0xffff);
}

// --- what is in the tables ---

struct PkeyPort {
  const RdmaNode* one;
  const HcaChoice* hca;
  const std::vector<Pkey>* table;
  [[nodiscard]] std::string name() const { return port_text(hca->device, hca->port); }
};

std::optional<std::uint16_t> key_at(const PkeyPort& port, int index) {
  const auto key = std::ranges::find(*port.table, index, &Pkey::index);
  return key == port.table->end() ? std::nullopt : std::optional(key->key);
}

// Reading ends after so many empty places, and after so many of all (collect/rdma); no table has
// 65536 places.
bool was_read(const PkeyPort& port, int index) {
  constexpr int kReadPast = 8;
  constexpr int kMostRead = 128;
  const bool reached = index < kMostRead && index <= port.table->back().index + kReadPast;
  return reached || index == 0xffff;
}

// InfiniBand alone has partitions; an active port is in one at least.
std::vector<PkeyPort> ports_of(const std::vector<RdmaNode>& nodes, Judge& judge) {
  std::vector<PkeyPort> ports;
  for (const RdmaNode& one : nodes) {
    for (const HcaChoice& hca : one.hcas->used) {
      const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
      if (hca.roce || port == nullptr) continue;
      if (port->pkeys.empty()) {
        miss_of_port(one, hca, "pkeys", judge);
      } else {
        ports.push_back({&one, &hca, &port->pkeys});
      }
    }
  }
  return ports;
}

// --- an empty place ---

std::string table_text(const PkeyPort& port) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> all;
  for (const Pkey& key : *port.table) all.push_back(fmt::format("{}: {:#06x}", key.index, key.key));
  const bool cut = all.size() > kShown;
  if (cut) all.resize(kShown);
  return fmt::format("{}{}", fmt::join(all, ", "), cut ? ", ..." : "");
}

// Whether all ports of the job can talk to each other with the keys at that place.
bool serves_all(const std::vector<PkeyPort>& ports, int index) {
  std::set<std::uint16_t> keys;
  for (const PkeyPort& port : ports) {
    const auto key = key_at(port, index);
    if (!key) return false;
    keys.insert(*key);
  }
  return keys.size() == 1 && (*keys.begin() & kFull) != 0;
}

Fix choose_index(const std::vector<PkeyPort>& ports) {
  constexpr int kLooked = 16;
  for (int index = 0; index < kLooked; ++index) {
    if (!serves_all(ports, index)) continue;
    const auto key = key_at(ports.front(), index).value_or(0);
    const auto value = index == 0 ? std::nullopt : std::optional(std::to_string(index));
    return {.node = "*",
            .kind = Fix::Kind::env,
            .env = {{"NCCL_IB_PKEY", value}},
            .text = fmt::format("place {} of the table of every port holds {:#06x}; another "
                                "partition needs the place that it has on these nodes",
                                index, key)};
  }
  return {.node = "*",
          .kind = Fix::Kind::manual,
          .text =
              "set NCCL_IB_PKEY to the index that the job's partition has on each node, or let "
              "the subnet manager's partitions.conf make the nodes members of it"};
}

void report_empty(const Case& c,
                  const std::vector<PkeyPort>& all,
                  const std::vector<PkeyPort>& empty,
                  Judge& judge) {
  const RdmaNode& one = *empty.front().one;
  const int index = index_of(one);
  std::vector<std::string> names;
  Finding finding{.code = "rdma-pkey-empty",
                  .severity = capped(c, Severity::blocker),
                  .certainty = Certainty::proved,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {one.node->host}},
                  .summary = ""};
  for (const PkeyPort& port : empty) {
    names.push_back(port.name());
    finding.subjects.devices.push_back(one.node->host + "/" + port.hca->device);
  }
  finding.summary = fmt::format(
      "{} leads to place {} of the partition tables, which is empty at {} of {}",
      said(*one.prediction, "NCCL_IB_PKEY"), index, fmt::join(names, ", "), one.node->host);
  const PkeyPort& first = empty.front();
  finding.evidence = {{.node = one.node->host,
                       .fact = fmt::format("rdma.{}.pkeys[{}]", first.name(), index),
                       .observed = "empty",
                       .expected = "a partition; the table has " + table_text(first),
                       .command = "grep . " +
                                  port_file(first.hca->device, first.hca->port, "pkeys") + "/*; " +
                                  see_setting(*one.prediction, "NCCL_IB_PKEY")}};
  finding.fix = {choose_index(all)};
  judge.report(std::move(finding));
}

// --- keys that do not meet ---

struct Partition {
  const RdmaNode* one;
  const HcaChoice* hca;  // an example
  Keys keys;             // at NCCL's index, of all ports that it takes
};

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
    const int index = index_of(*side->one);
    finding.evidence.push_back(
        {.node = side->one->node->host,
         .fact = fmt::format("rdma.pkeys[{}]", index),
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

// By node: its keys at NCCL's index go to `all`, ports that have none there are returned.
std::vector<PkeyPort> sort_out(const RdmaNode& one,
                               const std::vector<PkeyPort>& ports,
                               std::vector<Partition>& all,
                               Judge& judge) {
  const int index = index_of(one);
  Partition partition{.one = &one, .hca = nullptr, .keys = {}};
  std::vector<PkeyPort> empty;
  for (const PkeyPort& port : ports) {
    if (port.one != &one) continue;
    if (const auto key = key_at(port, index)) {
      partition.keys.insert(*key);
      if (partition.hca == nullptr) partition.hca = port.hca;
    } else if (was_read(port, index)) {
      empty.push_back(port);
    } else {
      miss_of_port(one, *port.hca, fmt::format("pkeys[{}]", index), judge,
                   "the table was not read that far");
    }
  }
  if (!partition.keys.empty()) all.push_back(std::move(partition));
  return empty;
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (one_alone(nodes, judge) || all_unused(nodes, judge)) return;
  const auto ports = ports_of(nodes, judge);
  if (ports.empty()) return judge.skip("no InfiniBand port is in use");
  std::vector<Partition> all;
  for (const RdmaNode& one : nodes) {
    const auto empty = sort_out(one, ports, all, judge);
    if (!empty.empty()) report_empty(c, ports, empty, judge);
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
constexpr Page kEmptyPage{
    .meaning =
        "NCCL_IB_PKEY is an index into each port's table of partition keys, and not a key. Here it "
        "leads to a place that holds none: `Call to ibv_modify_qp failed with 22 Invalid "
        "argument`, or packets that every port drops.",
    .confirm = "`grep . /sys/class/infiniband/mlx5_0/ports/1/pkeys/*`: 0x0000 is no partition.",
    .fix =
        "The index at which the job's partition stands on the node, or unset it, which takes index "
        "0. Where the partition is missing, the subnet manager's partitions.conf gives it.",
    .verify = "`cat` of that place prints a key such as 0x8001; `ib_write_bw` runs."};
constexpr std::string_view kCauses[] = {"rdma-path-failed"};
constexpr Code kCodes[] = {{.id = "rdma-pkey-mismatch",
                            .fault_class = FaultClass::ib_fabric_partition,
                            .worst = Severity::blocker,
                            .title = "InfiniBand ports share no partition",
                            .causes = kCauses,
                            .page = kPage},
                           {.id = "rdma-pkey-empty",
                            .fault_class = FaultClass::ib_fabric_partition,
                            .worst = Severity::blocker,
                            .title = "NCCL_IB_PKEY leads to an empty place",
                            .causes = kCauses,
                            .page = kEmptyPage}};

}  // namespace

extern const Check rdma_pkey{.title = "The InfiniBand ports share a partition",
                             .codes = kCodes,
                             .run = run,
                             .needs = Needs::rdma};

}  // namespace distdoctor::checks
