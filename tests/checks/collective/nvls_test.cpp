#include "support/check_cases.h"
#include "support/fake_isolations.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

const Isolation kFound = {.layer = Layer::nvls,
                          .ailment = Ailment::fails,
                          .places = {{"node1", -1}},
                          .workaround = {{"NCCL_NVLS_ENABLE", "0"}}};

void fabric(World& world, const std::string& state, const std::string& status) {
  world.node(1).nvml = Nvml{.gpus = {{.index = 0, .fabric_state = state, .fabric_status = status},
                                     {.index = 1, .fabric_state = state, .fabric_status = status}}};
}

Verdict broken(const std::vector<std::string>& more) {
  return {.code = "collective-nvls-broken",
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::crash,
          .says = "reduction in the NVSwitch (NVLS) on node1 fails",
          .blamed = {"node1"},
          .evidence = with_rows(proof_rows(Ailment::fails, " -x NCCL_NVLS_ENABLE=0"), more),
          .fixes = {"*: NCCL_NVLS_ENABLE=0", "node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"the fabric is in progress for ever",
     [](World& w) {
       fabric(w, "in progress", "");
       isolate(w, kFound);
     },
     {broken({"node1 NVSwitch fabric of GPU 0: in progress, not completed, success; nvidia-smi -q "
              "| grep -A3 Fabric"})}},
    {"the fabric came up wrong",
     [](World& w) {
       fabric(w, "completed", "insufficient resources");
       isolate(w, kFound);
     },
     {broken({"node1 NVSwitch fabric of GPU 0: completed, insufficient resources, not completed, "
              "success; nvidia-smi -q | grep -A3 Fabric"})}},
    {"the driver says that all is well",
     [](World& w) {
       fabric(w, "completed", "success");
       isolate(w, kFound);
     },
     {broken({})}},
    {"near miss: half of the proof is lost",
     [](World& w) {
       isolate(w, kFound);
       lose_the_sound_run(w);
     }},
    {"near miss: another layer",
     [](World& w) { isolate(w, {.layer = Layer::p2p, .ailment = Ailment::fails}); }},
};

TEST_CASE("collective/nvls") {
  run_cases("collective/nvls", cases);
}

}  // namespace
}  // namespace distdoctor::testing
