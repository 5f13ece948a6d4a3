// The GPUs of a node may use one way to each other at least.
#include <distdoctor/check.h>

#include "set_anywhere.h"
#include "variables.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

bool is_taken_as(const Prediction& prediction, const char* name, std::string_view taken) {
  const VariableReading* reading = find_reading(prediction, name);
  return reading != nullptr && reading->taken_as == taken;
}

bool no_transport(const Prediction& prediction) {
  const bool no_p2p = is_taken_as(prediction, "NCCL_P2P_DISABLE", "1") ||
                      is_taken_as(prediction, "NCCL_P2P_LEVEL", "LOC");
  return no_p2p && is_taken_as(prediction, "NCCL_SHM_DISABLE", "1") &&
         is_taken_as(prediction, "NCCL_NET_DISABLE_INTRA", "1");
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  see_settings(c, judge);
  if (!set_anywhere(c.cluster, "NCCL_NET_DISABLE_INTRA"))
    judge.skip("NCCL_NET_DISABLE_INTRA is not set");
  std::vector<InForce> rows = taken_as(c, "NCCL_NET_DISABLE_INTRA", "1");
  for (InForce& row : rows) {
    std::erase_if(row.places, [&](const Place& place) {
      return !no_transport(*find_prediction(c.cluster, place.node->host));
    });
    if (row.places.empty() || c.cluster.job.ranks_per_node.value_or(1) < 2) continue;
    Finding finding{.code = "env-no-transport",
                    .severity = capped(c, row, Severity::blocker),
                    .certainty = Certainty::likely,
                    .symptom = Symptom::crash,
                    .subjects = {.nodes = hosts_of(row.places)},
                    .summary = fmt::format("peer-to-peer, shared memory and the network are all "
                                           "forbidden between the GPUs of a node {}",
                                           where_text(c, row.places))};
    add_evidence(row, "unset: one way at least", finding);
    finding.fix = mend(c, row, std::nullopt, "then the network may be used inside a node");
    for (const char* name : {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"}) {
      finding.fix.push_back({.node = "*",
                             .kind = Fix::Kind::env,
                             .env = {{name, std::nullopt}},
                             .text = "switches for debugging"});
    }
    judge.report(std::move(finding));
  }
}

constexpr std::string_view kConfirm =
    "`env | grep -E '^(NCCL|CUDA|TORCH)_'` in the job, `cat ~/.nccl.conf /etc/nccl.conf`.";
constexpr Page kTransportPage{
    .meaning =
        "NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET_DISABLE_INTRA together leave no way "
        "between two GPUs of one node: `No transport found for rank a -> rank b`.",
    .confirm = kConfirm,
    .fix = "Unset all three.",
    .verify = "NCCL_DEBUG=INFO prints `Channel 00/0 : 0[0] -> 1[1] via ...`."};
constexpr Code kCodes[] = {{.id = "env-no-transport",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::blocker,
                            .title = "No transport is left between GPUs of a node",
                            .causes = {},
                            .page = kTransportPage}};

}  // namespace

extern const Check env_no_transport{
    .title = "GPUs of a node have a way to each other", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
