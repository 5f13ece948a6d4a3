#include "support/check_cases.h"
#include "support/fake_isolations.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Isolation own(Ailment ailment) {
  return {.layer = Layer::settings,
          .ailment = ailment,
          .names = {"NCCL_ALGO"},
          .workaround = {{"NCCL_ALGO", ""}}};
}

std::vector<std::string> own_rows(Ailment ailment) {
  return with_rows(proof_rows(ailment, "", "", "env -u NCCL_ALGO "),
                   {"node0 NCCL_ALGO: Tree (--env), not unset; printenv NCCL_ALGO",
                    "node1 NCCL_ALGO: Tree (--env), not unset; printenv NCCL_ALGO",
                    "node2 NCCL_ALGO: Tree (--env), not unset; printenv NCCL_ALGO",
                    "node3 NCCL_ALGO: Tree (--env), not unset; printenv NCCL_ALGO"});
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"an own switch breaks it",
     [](World& w) {
       w.set("NCCL_ALGO", "Tree");
       isolate(w, own(Ailment::fails));
     },
     {{.code = "collective-own-switch-breaks",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::crash,
       .says = "with NCCL_ALGO the collective fails; without, it works",
       .evidence = own_rows(Ailment::fails),
       .fixes = {"*: NCCL_ALGO unset"}}}},
    {"an own switch slows it",
     [](World& w) {
       w.set("NCCL_ALGO", "Tree");
       isolate(w, own(Ailment::slow));
     },
     {{.code = "collective-own-switch-slows",
       .severity = degraded,
       .certainty = proved,
       .symptom = Symptom::slow,
       .says = "without, it is faster: 2.0 GB/s",
       .evidence = own_rows(Ailment::slow),
       .fixes = {"*: NCCL_ALGO unset"}}}},
    {"a protocol corrupts",
     [](World& w) {
       isolate(w, {.layer = Layer::protocol,
                   .ailment = Ailment::corrupts,
                   .workaround = {{"NCCL_PROTO", "Simple"}}});
     },
     {{.code = "collective-choice",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::wrong_result,
       .says = "a protocol that NCCL chooses by itself (LL, LL128) corrupts",
       .evidence = proof_rows(Ailment::corrupts, " -x NCCL_PROTO=Simple"),
       .fixes = {"*: NCCL_PROTO=Simple", "*: (manual)"}}}},
    {"near miss: half of the proof is lost",
     [](World& w) {
       isolate(w, own(Ailment::fails));
       lose_the_sound_run(w);
     }},
    {"near miss: another layer",
     [](World& w) { isolate(w, {.layer = Layer::gdr, .ailment = Ailment::fails}); }},
};

TEST_CASE("collective/tuning") {
  run_cases("collective/tuning", cases);
}

}  // namespace
}  // namespace distdoctor::testing
