#include "checks/env/variables.h"

namespace distdoctor::testing {
namespace {

Verdict refused(Severity severity, const std::string& value) {
  return {.code = "env-torch-debug-refused",
          .severity = severity,
          .certainty = Certainty::likely,
          .symptom = Symptom::crash,
          .says = "importing torch.distributed fails with it",
          .blamed = {"node1"},
          .evidence = {said_row("TORCH_DISTRIBUTED_DEBUG", value, "OFF, INFO or DETAIL, or unset")},
          .fixes = {"node1: TORCH_DISTRIBUTED_DEBUG unset"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}, {}, {}, "TORCH_DISTRIBUTED_DEBUG is not set"},
    {"NVIDIA's container", nvidia_container, {}, {}, "TORCH_DISTRIBUTED_DEBUG is not set"},
    {"1 is no level",
     [](World& w) { say_on(w, 1, "TORCH_DISTRIBUTED_DEBUG", "1"); },
     {refused(Severity::blocker, "1")}},
    {"nor is an empty text, in a Gloo job either",
     [](World& w) {
       say_on(w, 1, "TORCH_DISTRIBUTED_DEBUG", "");
       w.cluster.job.nccl = Use::no;
     },
     {refused(Severity::blocker, "")}},
    {"a login shell is no evidence of the job",
     [](World& w) {
       say_on(w, 1, "TORCH_DISTRIBUTED_DEBUG", "true", Source::environment);
       w.node(1).context = Context::ssh;
     },
     {refused(Severity::notice, "true")}},
    {"near miss: levels in any case",
     [](World& w) {
       say_on(w, 0, "TORCH_DISTRIBUTED_DEBUG", "off");
       say_on(w, 1, "TORCH_DISTRIBUTED_DEBUG", "Info");
       say_on(w, 2, "TORCH_DISTRIBUTED_DEBUG", "DETAIL");
     }},
};

TEST_CASE("env/torch_debug") {
  run_cases("env/torch_debug", cases);
}

}  // namespace
}  // namespace distdoctor::testing
