#include "support/check_cases.h"
#include "support/fake_isolations.h"

#include <cstdint>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void small(World& world) {
  World::change(world.node(1).shm, [](SharedMemory& shm) {
    shm.size = std::int64_t{64} << 20;
    shm.free = std::int64_t{60} << 20;
  });
}

const std::string kMount =
    "node1 /dev/shm: 60 MiB of 64 MiB free, not room for the segments of all ranks; df -B1 "
    "/dev/shm; ls -la /dev/shm";

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"the way by shared memory hangs",
     [](World& w) {
       small(w);
       isolate(w, {.layer = Layer::shm,
                   .ailment = Ailment::hangs,
                   .places = {{"node1", -1}},
                   .workaround = {{"NCCL_SHM_DISABLE", "1"}}});
     },
     {{.code = "collective-shm-broken",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "the way by shared memory on node1 hangs",
       .blamed = {"node1"},
       .evidence = with_rows(proof_rows(Ailment::hangs, " -x NCCL_SHM_DISABLE=1"), {kMount}),
       .fixes = {"*: NCCL_SHM_DISABLE=1", "node1: (manual)"}}}},
    {"the pools do not fit",
     [](World& w) {
       small(w);
       isolate(w, {.layer = Layer::shm, .ailment = Ailment::fails, .places = {{"node1", -1}}},
               "failed to extend /dev/shm/nccl-x");
     },
     {{.code = "collective-shm-full",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::crash,
       .says = "do not fit into /dev/shm on node1",
       .blamed = {"node1"},
       .evidence =
           with_rows(proof_rows(Ailment::fails, "", "failed to extend /dev/shm/nccl-x"), {kMount}),
       .fixes = {"node1: (manual)"}}}},
    {"near miss: no limit to speak of",
     [](World& w) {
       World::change(w.node(1).shm, [](SharedMemory& shm) { shm.size = 0; });
       isolate(w, {.layer = Layer::shm, .ailment = Ailment::fails, .places = {{"node1", -1}}});
     },
     {{.code = "collective-shm-full",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::crash,
       .says = "do not fit into /dev/shm on node1",
       .blamed = {"node1"},
       .evidence = proof_rows(Ailment::fails, ""),
       .fixes = {"node1: (manual)"}}}},
    {"near miss: another layer",
     [](World& w) { isolate(w, {.layer = Layer::p2p, .ailment = Ailment::hangs}); }},
    {"near miss: half of the proof is lost",
     [](World& w) {
       isolate(w, {.layer = Layer::shm, .ailment = Ailment::fails});
       lose_the_sound_run(w);
     }},
};

TEST_CASE("collective/shm") {
  run_cases("collective/shm", cases);
}

}  // namespace
}  // namespace distdoctor::testing
