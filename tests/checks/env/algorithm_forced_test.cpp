#include "checks/env/variables.h"

namespace distdoctor::testing {
namespace {

Verdict forced(Symptom symptom,
               const std::string& name,
               const std::string& value,
               const std::string& says) {
  return {.code = "env-algorithm-forced",
          .severity = Severity::notice,
          .certainty = Certainty::likely,
          .symptom = symptom,
          .says = says,
          .blamed = {"node1"},
          .evidence = {said_row(name, value, "unset: NCCL chooses by size, topology and hardware")},
          .fixes = {"node1: " + name + " unset"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"NVIDIA's container", nvidia_container},
    {"AWS with EFA, whose guide forces Simple", aws_efa},
    {"RCCL", amd_rccl},
    {"Google's TCPX, whose guide forces both", google_tcpx},
    {"a tuned InfiniBand cluster", tuned_infiniband},
    {"an algorithm",
     [](World& w) { say_on(w, 1, "NCCL_ALGO", "Ring"); },
     {forced(Symptom::slow, "NCCL_ALGO", "Ring", "NCCL_ALGO=Ring on node1: one choice")}},
    {"LL128",
     [](World& w) { say_on(w, 1, "NCCL_PROTO", "LL,ll128"); },
     {forced(Symptom::wrong_result, "NCCL_PROTO", "LL,ll128", "LL128 corrupts data silently")}},
    {"near miss: what is left out", [](World& w) { say(w, "NCCL_PROTO", "^LL128"); }},
    {"near miss: empty", [](World& w) { say(w, "NCCL_ALGO", ""); }},
    {"near miss: what NCCL refuses is told elsewhere",
     [](World& w) { say(w, "NCCL_ALGO", "Rings"); }},
    {"near miss: Gloo",
     [](World& w) {
       say(w, "NCCL_ALGO", "Ring");
       w.cluster.job.nccl = Use::no;
     }},
};

TEST_CASE("env/algorithm_forced") {
  run_cases("env/algorithm_forced", cases);
}

}  // namespace
}  // namespace distdoctor::testing
