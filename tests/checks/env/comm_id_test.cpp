#include "checks/env/variables.h"

namespace distdoctor::testing {
namespace {

Verdict foreign(Severity severity, const std::string& value, const std::string& says) {
  const std::string rest = " NCCL_COMM_ID: " + value +
                           " (--env), not unset, or an address of rank 0's node; printenv "
                           "NCCL_COMM_ID";
  return {.code = "env-comm-id-foreign",
          .severity = severity,
          .certainty = Certainty::likely,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = {"node0", "node1", "node2", "node3"},
          .evidence = {"node0" + rest, "node1" + rest, "node2" + rest, "node3" + rest},
          .fixes = {"*: NCCL_COMM_ID unset"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}, {}, {}, "NCCL_COMM_ID is not set"},
    {"of rank 0's node, by either network",
     [](World& w) { say(w, "NCCL_COMM_ID", mgmt(0) + ":29600"); }},
    {"of another cluster",
     [](World& w) { say(w, "NCCL_COMM_ID", "10.99.0.1:29600"); },
     {foreign(Severity::blocker, "10.99.0.1:29600", "is an address of no node of this job")}},
    {"of a node without rank 0",
     [](World& w) { say(w, "NCCL_COMM_ID", fast(2) + ":29600"); },
     {foreign(Severity::blocker,
              "10.20.0.12:29600",
              "is an address of node2, and rank 0, which binds it, is on node0")}},
    {"loopback",
     [](World& w) { say(w, "NCCL_COMM_ID", "127.0.0.1:29600"); },
     {foreign(Severity::blocker, "127.0.0.1:29600", "is loopback")}},
    {"IPv6",
     [](World& w) { say(w, "NCCL_COMM_ID", "[fd00::99]:29600"); },
     {foreign(Severity::blocker, "[fd00::99]:29600", "is an address of no node")}},
    {"nobody knows whether NCCL is used",
     [](World& w) {
       say(w, "NCCL_COMM_ID", "10.99.0.1:29600");
       w.cluster.job.nccl = Use::maybe;
     },
     {foreign(Severity::notice, "10.99.0.1:29600", "is an address of no node of this job")}},
    {"near miss: a host name", [](World& w) { say(w, "NCCL_COMM_ID", "node9:29600"); }},
    {"near miss: a node that nobody saw may have it",
     [](World& w) {
       say(w, "NCCL_COMM_ID", "10.99.0.1:29600");
       w.node(3).links = Unknown{.text = "no answer"};
     }},
    {"near miss: nobody knows where rank 0 is",
     [](World& w) {
       say(w, "NCCL_COMM_ID", "10.99.0.1:29600");
       w.cluster.predicted.master = std::nullopt;
     }},
    {"near miss: one node may use loopback",
     [](World& w) {
       say(w, "NCCL_COMM_ID", "127.0.0.1:29600");
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
};

TEST_CASE("env/comm_id") {
  run_cases("env/comm_id", cases);
}

}  // namespace
}  // namespace distdoctor::testing
