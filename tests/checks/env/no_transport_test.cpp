#include "checks/env/variables.h"

namespace distdoctor::testing {
namespace {

Verdict none_left(Severity severity) {
  return {.code = "env-no-transport",
          .severity = severity,
          .certainty = Certainty::likely,
          .symptom = Symptom::crash,
          .says = "all forbidden between the GPUs of a node on node1",
          .blamed = {"node1"},
          .evidence = {said_row("NCCL_NET_DISABLE_INTRA", "1", "unset: one way at least")},
          .fixes = {"node1: NCCL_NET_DISABLE_INTRA unset", "*: NCCL_P2P_DISABLE unset",
                    "*: NCCL_SHM_DISABLE unset"}};
}

void forbid(World& w, const std::vector<const char*>& names, int ranks = 8) {
  for (const char* name : names) say_on(w, 1, name, "1");
  w.cluster.job.ranks_per_node = ranks;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}, {}, {}, "NCCL_NET_DISABLE_INTRA is not set"},
    {"all three",
     [](World& w) {
       forbid(w, {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NET_DISABLE_INTRA"});
     },
     {none_left(Severity::blocker)}},
    {"peer-to-peer by its level",
     [](World& w) {
       forbid(w, {"NCCL_SHM_DISABLE", "NCCL_NET_DISABLE_INTRA"});
       say_on(w, 1, "NCCL_P2P_LEVEL", "LOC");
     },
     {none_left(Severity::blocker)}},
    {"nobody knows whether NCCL is used",
     [](World& w) {
       forbid(w, {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NET_DISABLE_INTRA"});
       w.cluster.job.nccl = Use::maybe;
     },
     {none_left(Severity::notice)}},
    {"near miss: the network is left",
     [](World& w) { forbid(w, {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"}); },
     {},
     {},
     "NCCL_NET_DISABLE_INTRA is not set"},
    {"near miss: shared memory is left",
     [](World& w) { forbid(w, {"NCCL_P2P_DISABLE", "NCCL_NET_DISABLE_INTRA"}); }},
    {"near miss: peer-to-peer is left, since true is 0",
     [](World& w) {
       forbid(w, {"NCCL_SHM_DISABLE", "NCCL_NET_DISABLE_INTRA"});
       say_on(w, 1, "NCCL_P2P_DISABLE", "true");
     }},
    {"near miss: one rank a node",
     [](World& w) {
       forbid(w, {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NET_DISABLE_INTRA"}, 1);
     }},
};

TEST_CASE("env/no_transport") {
  run_cases("env/no_transport", cases);
}

}  // namespace
}  // namespace distdoctor::testing
