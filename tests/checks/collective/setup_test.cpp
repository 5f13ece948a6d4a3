#include "support/check_cases.h"
#include "support/fake_isolations.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

template <int Row>
void say(World& world);

struct Said {
  const char* code;
  const char* error;
  const char* means;
};
constexpr Said kSaid[] = {
    {"collective-duplicate-gpu", "Duplicate GPU detected : rank 0 and rank 1", "two ranks use one"},
    {"collective-world-size", "Bootstrap Root : mismatch in info from procs", "disagree about"},
    {"collective-driver-old", "CUDA driver version is insufficient for CUDA runtime version",
     "too old for this NCCL's CUDA"},
    {"collective-no-driver", "dlopen libcuda.so.1: cannot open shared object file", "no NVIDIA"},
    {"collective-nccl-not-loaded", "dlopen /opt/libnccl.so.2: wrong ELF class", "cannot be loaded"},
    {"collective-bootstrap", "Bootstrap : no socket interface found", "finds no interface"},
    {"collective-bootstrap", "socketPollConnect: connect to 10.0.0.1<40000> returned",
     "do not "
     "reach"},
    {"collective-fabric-not-ready",
     "cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized",
     "wait for the NVSwitch fabric"},
    {"collective-fabric-not-ready", "cuInit: CUDA_ERROR_SYSTEM_NOT_READY", "NVSwitch fabric"},
    {"collective-fabric-not-ready",
     "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet "
     "initialized",
     "NVSwitch fabric"},
};

template <int Row>
void say(World& world) {
  isolate(world, {.layer = Layer::setup, .ailment = Ailment::fails}, kSaid[Row].error);
}

template <int Row>
CheckCase heard() {
  const Said& said = kSaid[Row];
  return {said.error,
          say<Row>,
          {{.code = said.code,
            .severity = Severity::blocker,
            .certainty = Certainty::proved,
            .symptom = Symptom::crash,
            .says = said.means,
            .evidence = twice_rows("failed; rank 0 on node0 stopped after comm_init",
                                   std::string(": ") + said.error, "works"),
            .fixes = {"*: (manual)"}}}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    heard<0>(),
    heard<1>(),
    heard<2>(),
    heard<3>(),
    heard<4>(),
    heard<5>(),
    heard<6>(),
    heard<7>(),
    heard<8>(),
    heard<9>(),
    {"no word",
     [](World& w) { isolate(w, {.layer = Layer::setup, .ailment = Ailment::hangs}); },
     {{.code = "collective-no-start",
       .severity = Severity::blocker,
       .certainty = Certainty::likely,
       .symptom = Symptom::hang,
       .says = "not even one rank alone",
       .evidence = twice_rows("hung; rank 0 on node0 stopped after comm_init", "", "works"),
       .fixes = {"*: (manual)"}}}},
    {"near miss: another layer",
     [](World& w) { isolate(w, {.layer = Layer::gdr, .ailment = Ailment::fails}); }},
    {"near miss: half of the proof is lost",
     [](World& w) {
       say<0>(w);
       lose_the_sound_run(w);
     }},
};

TEST_CASE("collective/setup") {
  run_cases("collective/setup", cases);
}

}  // namespace
}  // namespace distdoctor::testing
