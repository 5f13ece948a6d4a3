// NCCL_COMM_ID, where it is set, is an address of the node that rank 0 runs on.
#include <distdoctor/check.h>

#include "set_anywhere.h"
#include "variables.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

constexpr const char* kVariable = "NCCL_COMM_ID";

// The address of "10.0.0.1:29500" and "[fd00::1]:29500"; none of a host name.
std::optional<Address> address_in(std::string_view value) {
  if (value.starts_with('[')) {
    const auto end = value.find(']');
    return end == std::string_view::npos ? std::nullopt : Address::parse(value.substr(1, end - 1));
  }
  return Address::parse(value.substr(0, value.find(':')));
}

enum class Owner : std::uint8_t { unknown, rank0, another, nobody };

// Rank 0 runs where MASTER_ADDR leads, by custom.
Owner owner_of(const ClusterFacts& cluster, const Address& address, std::string& host) {
  bool all_seen = true;
  for (const NodeFacts& node : cluster.nodes) {
    all_seen = all_seen && node.links.known();
    if (has_address(node, address)) host = node.host;
  }
  const bool placed = cluster.predicted.master && !cluster.predicted.master->endpoint &&
                      !cluster.predicted.master->node.empty();
  if (host.empty()) return all_seen && placed ? Owner::nobody : Owner::unknown;
  if (!placed || host == cluster.predicted.master->node) return Owner::rank0;
  return Owner::another;
}

std::string reason_of(const ClusterFacts& cluster,
                      const Address& address,
                      Owner owner,
                      const std::string& host) {
  if (address.loopback()) return "is loopback: ranks on other nodes connect to themselves";
  if (owner == Owner::nobody) return "is an address of no node of this job";
  return fmt::format("is an address of {}, and rank 0, which binds it, is on {}", host,
                     cluster.predicted.master->node);
}

void judge_id(const Case& c, const InForce& row, Judge& judge) {
  const auto address = address_in(row.value());
  if (!address) return;
  std::string host;
  const Owner owner = address->loopback() ? Owner::another : owner_of(c.cluster, *address, host);
  if (owner == Owner::unknown || owner == Owner::rank0) return;
  Finding finding{.code = "env-comm-id-foreign",
                  .severity = capped(c, row, Severity::blocker),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = hosts_of(row.places)},
                  .summary = fmt::format("{} {} {}", row.text(), where_text(c, row.places),
                                         reason_of(c.cluster, *address, owner, host))};
  add_evidence(row, "unset, or an address of rank 0's node", finding);
  finding.fix = mend(c, row, std::nullopt, "torch and MPI programs hand NCCL's id over themselves");
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return judge.skip("the job does without NCCL");
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  see_settings(c, judge);
  if (!set_anywhere(c.cluster, "NCCL_COMM_ID")) judge.skip("NCCL_COMM_ID is not set");
  for (const InForce& row : in_force(c, kVariable)) judge_id(c, row, judge);
}

constexpr Page kPage{
    .meaning =
        "NCCL_COMM_ID fixes the address at which NCCL's ranks meet, and goes before "
        "NCCL_SOCKET_IFNAME. Rank 0 binds it. A value that an earlier job on other machines left "
        "behind takes every job to a place that is not there.",
    .confirm =
        "`env | grep NCCL_COMM_ID` in the job; `ip -br addr` on rank 0's node does not list the "
        "address.",
    .fix = "Unset NCCL_COMM_ID.",
    .verify = "NCCL_DEBUG=INFO prints `Bootstrap: Using` with an address that all nodes reach."};
constexpr std::string_view kCauses[] = {"net-nccl-ifname-no-match", "net-nccl-ifname-loopback",
                                        "net-nccl-interface-unreachable"};
constexpr Code kCodes[] = {{.id = "env-comm-id-foreign",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::blocker,
                            .title = "NCCL_COMM_ID leads to the wrong machine",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check env_comm_id{
    .title = "NCCL_COMM_ID is an address of rank 0's node", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
