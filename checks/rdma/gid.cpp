// The GIDs that RoCE ports use can reach one another.
#include <distdoctor/check.h>

#include "rdma_paths.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

constexpr const char* kVariable = "NCCL_IB_GID_INDEX";

// In falling order of what it is good for.
enum class Kind : std::uint8_t { v2_ipv4, v2_ipv6, v1, link_local, missing };

constexpr std::string_view kKinds[] = {"RoCE v2 with an IPv4 address",
                                       "RoCE v2 with an IPv6 address", "RoCE v1",
                                       "a link-local one", "none"};

std::string_view text_of(Kind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

Kind kind_of(const Gid& gid) {
  const auto address = Address::parse(gid.gid);
  if (!address || address->link_local()) return Kind::link_local;
  if (gid.type != "RoCE v2") return Kind::v1;
  return gid.gid.starts_with("0000:0000:0000:0000:0000:ffff:") ? Kind::v2_ipv4 : Kind::v2_ipv6;
}

bool routable(Kind kind) {
  return kind == Kind::v2_ipv4 || kind == Kind::v2_ipv6;
}

struct Chosen {
  const RdmaNode* one;
  const HcaChoice* hca;
  const RdmaPort* port;
  const Gid* gid;  // null: the table has none at that index
  Kind kind;

  [[nodiscard]] int index() const { return hca->gid_index.value_or(0); }
  [[nodiscard]] std::string name() const { return port_text(hca->device, hca->port); }
  [[nodiscard]] std::string text() const {
    if (gid == nullptr) return fmt::format("index {}: none", index());
    return fmt::format("index {}: {}, {}", index(), gid->gid, gid->type);
  }
};

Chosen chosen_at(const RdmaNode& one, const HcaChoice& hca, const RdmaPort& port) {
  const auto gid = std::ranges::find(port.gids, hca.gid_index.value_or(0), &Gid::index);
  const bool there = gid != port.gids.end();
  return {.one = &one,
          .hca = &hca,
          .port = &port,
          .gid = there ? &*gid : nullptr,
          .kind = there ? kind_of(*gid) : Kind::missing};
}

// A port that is up has one GID at least: an empty table is one that was not seen.
std::vector<Chosen> chosen_gids(const std::vector<RdmaNode>& nodes, Judge& judge) {
  std::vector<Chosen> all;
  for (const RdmaNode& one : nodes) {
    for (const HcaChoice& hca : one.hcas->used) {
      const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
      if (!hca.roce || port == nullptr) continue;
      if (port->gids.empty()) {
        miss_of_port(one, hca, "gids", judge);
      } else {
        all.push_back(chosen_at(one, hca, *port));
      }
    }
  }
  return all;
}

const Gid* best_gid(const RdmaPort& port) {
  const Gid* best = nullptr;
  for (const Gid& gid : port.gids) {
    if (best == nullptr || kind_of(gid) < kind_of(*best)) best = &gid;
  }
  return best != nullptr && routable(kind_of(*best)) ? best : nullptr;
}

// --- mending ---

bool index_is_set(const RdmaNode& one) {
  const Setting* setting = find_setting(*one.prediction, kVariable);
  return setting != nullptr && !setting->value.empty() && setting->value.front() != '-';
}

// The index that leads to a routable GID on every port of the job, if there is one.
std::optional<int> common_index(const std::vector<Chosen>& all) {
  std::optional<int> common;
  for (const Chosen& one : all) {
    const Gid* best = best_gid(*one.port);
    if (best == nullptr || (common && *common != best->index)) return std::nullopt;
    common = best->index;
  }
  return common;
}

// From 2.21 on NCCL searches by itself; of 2.21 and 2.22 the rules do not tell.
bool searches(const RdmaNode& one) {
  const Prediction& prediction = *one.prediction;
  return prediction.nccl_version_known && prediction.nccl.known() &&
         prediction.nccl->rules != NcclRules::to_2_22;
}

std::vector<Fix> mend(const std::vector<Chosen>& all, const Chosen& odd) {
  const bool set = index_is_set(*odd.one);
  const bool automatic = std::ranges::all_of(
      all, [](const Chosen& one) { return searches(*one.one) && best_gid(*one.port) != nullptr; });
  if (set && automatic) {
    return {{.node = "*",
             .kind = Fix::Kind::env,
             .env = {{kVariable, std::nullopt}},
             .text = "NCCL 2.21 and later then looks for the RoCE v2 GID itself, on each port"}};
  }
  if (const auto index = common_index(all)) {
    return {{.node = "*",
             .kind = Fix::Kind::env,
             .env = {{kVariable, std::to_string(*index)}},
             .text = "there every port of the job has a RoCE v2 GID with an address"}};
  }
  const std::string netdev = odd.port->gids.empty() ? "" : " " + odd.port->gids.front().netdev;
  return {{.node = odd.one->node->host,
           .kind = Fix::Kind::manual,
           .text = "give the netdev" + netdev + " of " + odd.name() +
                   " an address in the subnet of the other nodes' ports"}};
}

// --- findings ---

struct Complaint {
  Severity severity;
  Certainty certainty;
  std::string why;
  std::string expected;
};

void report(const Case& c,
            const std::vector<Chosen>& all,
            const Chosen& odd,
            const Complaint& complaint,
            Judge& judge) {
  Finding finding{.code = "rdma-gid",
                  .severity = capped(c, complaint.severity),
                  .certainty = complaint.certainty,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {odd.one->node->host},
                               .devices = {odd.one->node->host + "/" + odd.hca->device}},
                  .summary = fmt::format("{} of {} uses the GID at {}; {}", odd.name(),
                                         odd.one->node->host, odd.text(), complaint.why)};
  finding.evidence = {{.node = odd.one->node->host,
                       .fact = fmt::format("rdma.{}.gid", odd.name()),
                       .observed = odd.text(),
                       .expected = complaint.expected,
                       .command = "grep -r . " + port_file(odd.hca->device, odd.hca->port, "gids") +
                                  "; " + see_setting(*odd.one->prediction, kVariable)}};
  finding.fix = mend(all, odd);
  judge.report(std::move(finding));
}

// The kind that most nodes' ports of this name have; only where it is clear.
std::optional<Kind> usual_kind(const std::vector<Chosen>& all, const Chosen& one) {
  std::vector<Chosen> same;
  std::ranges::copy_if(all, std::back_inserter(same),
                       [&](const Chosen& other) { return other.name() == one.name(); });
  std::map<Kind, int> votes;
  for (const Chosen& other : same) ++votes[other.kind];
  std::optional<Kind> best;
  for (const auto& [kind, count] : votes) {  // on a tie the better one
    if (!best || count > votes[*best]) best = kind;
  }
  return best;
}

// What the others use, if that is another kind, and theirs is the better one.
std::optional<Complaint> apart(const std::vector<Chosen>& all, const Chosen& one) {
  const auto usual = usual_kind(all, one);
  if (!usual || *usual == one.kind || !routable(*usual)) return std::nullopt;
  return Complaint{Severity::blocker, Certainty::likely,
                   fmt::format("the same port of other nodes uses {}", text_of(*usual)),
                   std::string(text_of(*usual))};
}

// --- what messages over these very GIDs showed ---

enum class Tries : std::uint8_t { none, passed, failed };

bool is_end(const Chosen& one, const std::string& host, const PathEnd& end) {
  return one.gid != nullptr && host == one.one->node->host && end.device == one.hca->device &&
         end.port == one.hca->port && end.gid_index == one.index() && end.gid == one.gid->gid;
}

// Of several tries between the same ports the last one counts.
Tries tries_of(const Case& c, const Chosen& one) {
  const auto& paths = c.cluster.rdma_paths;
  Tries all = Tries::none;
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    const bool here = is_end(one, path->from, sender_of(c, *path)) ||
                      is_end(one, path->to, receiver_of(c, *path));
    const bool again = std::any_of(std::next(path), paths.end(),
                                   [&](const RdmaPath& later) { return same_ends(*path, later); });
    if (!here || again) continue;
    if (is_broken(*path)) return Tries::failed;
    if (path->error.empty() && !path->messages.empty()) all = Tries::passed;
  }
  return all;
}

// The other nodes' ports of that name; where none has it, all of theirs.
std::vector<const Chosen*> partners_of(const std::vector<Chosen>& all, const Chosen& one) {
  std::vector<const Chosen*> same;
  std::vector<const Chosen*> any;
  for (const Chosen& other : all) {
    if (other.one == one.one) continue;
    any.push_back(&other);
    if (other.name() == one.name()) same.push_back(&other);
  }
  return same.empty() ? any : same;
}

// Link-local ones reach each other where all ports of the rail are on one link.
bool all_link_local(const std::vector<Chosen>& all, const Chosen& one) {
  const auto partners = partners_of(all, one);
  return !partners.empty() && std::ranges::all_of(partners, [](const Chosen* other) {
    return other->kind == Kind::link_local;
  });
}

Complaint of_link_local(const Case& c, const std::vector<Chosen>& all, const Chosen& one) {
  const bool may_work = tries_of(c, one) == Tries::none && all_link_local(all, one);
  return {.severity = may_work ? Severity::notice : Severity::degraded,
          .certainty = may_work ? Certainty::possible : Certainty::likely,
          .why = may_work ? "a link-local one leads nowhere but to its link, which is enough only "
                            "where all ports of the rail are on one"
                          : "a link-local one leads nowhere but to its link",
          .expected = ""};
}

std::optional<Complaint> complaint_of(const Case& c,
                                      const std::vector<Chosen>& all,
                                      const Chosen& one) {
  if (one.kind == Kind::missing) {
    return Complaint{Severity::blocker, Certainty::proved,
                     (index_is_set(*one.one) ? "NCCL_IB_GID_INDEX" : "NCCL's own choice") +
                         std::string(" leads to an empty place of the table"),
                     "a GID"};
  }
  if (tries_of(c, one) == Tries::passed) return std::nullopt;
  if (auto other = apart(all, one)) return other;
  const Gid* best = best_gid(*one.port);
  if (routable(one.kind) || best == nullptr) return std::nullopt;
  Complaint complaint =
      one.kind == Kind::v1  // works within one subnet
          ? Complaint{Severity::notice, Certainty::possible, "RoCE v1 is not routed", ""}
          : of_link_local(c, all, one);
  complaint.expected = fmt::format("index {}: {}, {}", best->index, best->gid, best->type);
  return complaint;
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  if (all_unused(nodes, judge)) return;
  const auto all = chosen_gids(nodes, judge);
  if (all.empty()) return judge.skip("no RoCE port is in use");
  for (const Chosen& one : all) {
    if (const auto complaint = complaint_of(c, all, one)) report(c, all, one, *complaint, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "A RoCE port has a table of GIDs: for each address of its netdev one for RoCE v1 and one "
        "for v2, and link-local ones. Both ends have to use the same kind. NCCL 2.21 and later "
        "look for a RoCE v2 GID with an IPv4 address; with NCCL_IB_GID_INDEX set, and in older "
        "versions (index 0), it takes that place of the table whatever is in it: `Call to "
        "ibv_modify_qp failed with 110 Connection timed out` or `22 Invalid argument`. Where all "
        "ends take link-local ones, RoCE works as long as all are on one link.",
    .confirm =
        "`show_gids`, or `grep -r . /sys/class/infiniband/mlx5_0/ports/1/gids` with "
        "gid_attrs/types "
        "beside it.",
    .fix =
        "Unset NCCL_IB_GID_INDEX (NCCL 2.21 and later), or set it to the index that is RoCE v2 "
        "with "
        "an address on every node. A port without an address needs one.",
    .verify = "`ib_write_bw -x INDEX` runs between the two ports; NCCL connects."};
constexpr std::string_view kCauses[] = {"rdma-path-failed", "rdma-no-route"};
constexpr Code kCodes[] = {{.id = "rdma-gid",
                            .fault_class = FaultClass::roce_gid,
                            .worst = Severity::blocker,
                            .title = "A RoCE port uses the wrong GID",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check rdma_gid{.title = "RoCE ports use GIDs that reach one another",
                            .codes = kCodes,
                            .run = run,
                            .needs = Needs::rdma};

}  // namespace distdoctor::checks
