#include "support/check_cases.h"
#include "support/fake_isolations.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

const Isolation kInterface = {.layer = Layer::interface,
                              .ailment = Ailment::hangs,
                              .places = {{"node1", -1}},
                              .names = {"eth0"},
                              .workaround = {{"NCCL_SOCKET_IFNAME", "=eth1"}}};

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"another interface works",
     [](World& w) { isolate(w, kInterface); },
     {{.code = "collective-interface-wrong",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "traffic by eth0 on node1 hangs; NCCL_SOCKET_IFNAME==eth1 is what works",
       .blamed = {"node1"},
       .evidence = proof_rows(Ailment::hangs, " -x NCCL_SOCKET_IFNAME==eth1"),
       .fixes = {"*: NCCL_SOCKET_IFNAME==eth1"}}}},
    {"more connections are faster",
     [](World& w) {
       isolate(w, {.layer = Layer::streams,
                   .ailment = Ailment::slow,
                   .workaround = {{"NCCL_NSOCKS_PERTHREAD", "4"}, {"NCCL_SOCKET_NTHREADS", "4"}}});
     },
     {{.code = "collective-few-streams",
       .severity = degraded,
       .certainty = proved,
       .symptom = Symptom::slow,
       .says = "one TCP connection does not fill the wire: 2.0 GB/s, and 12.0 GB/s",
       .evidence =
           proof_rows(Ailment::slow, " -x NCCL_NSOCKS_PERTHREAD=4 -x NCCL_SOCKET_NTHREADS=4"),
       .fixes = {"*: NCCL_NSOCKS_PERTHREAD=4 NCCL_SOCKET_NTHREADS=4"}}}},
    {"near miss: half of the proof is lost",
     [](World& w) {
       isolate(w, kInterface);
       lose_the_sound_run(w);
     }},
    {"near miss: another layer",
     [](World& w) { isolate(w, {.layer = Layer::hca, .ailment = Ailment::fails}); }},
};

TEST_CASE("collective/tcp") {
  run_cases("collective/tcp", cases);
}

}  // namespace
}  // namespace distdoctor::testing
