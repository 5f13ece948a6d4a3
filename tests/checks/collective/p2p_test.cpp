#include "support/check_cases.h"
#include "support/fake_isolations.h"
#include "support/gpu_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

const std::map<std::string, std::string> kOff = {{"NCCL_P2P_DISABLE", "1"}};

Isolation found(Ailment ailment, std::vector<RunPlace> places = {{"node1", -1}}) {
  return {.layer = Layer::p2p, .ailment = ailment, .places = places, .workaround = kOff};
}

void redirect(World& world) {
  add_gpus(world, 2);
  World::change(world.node(1).pci, [](Pci& pci) {
    device_at(pci, "0000:00:00.0").acs_redirects = true;
    pci.iommu = "translated";
  });
}

const std::vector<std::string> kBus = {
    "node1 ACS of 0000:00:00.0: redirects, as 1 bridge do, not no ReqRedir, no CmpltRedir; lspci "
    "-vvv -s 0000:00:00.0 | grep ACSCtl",
    "node1 IOMMU: translates the GPUs' addresses, not passes them on, or is off; cat "
    "/sys/kernel/iommu_groups/*/type | sort | uniq -c"};

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"hangs on a node whose bridges redirect",
     [](World& w) {
       redirect(w);
       isolate(w, found(Ailment::hangs));
     },
     {{.code = "collective-p2p-broken",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "peer-to-peer access on node1 hangs",
       .blamed = {"node1"},
       .evidence = with_rows(proof_rows(Ailment::hangs, " -x NCCL_P2P_DISABLE=1"), kBus),
       .fixes = {"*: NCCL_P2P_DISABLE=1", "node1: (manual)"}}}},
    {"corrupts between two GPUs, now and then",
     [](World& w) {
       Isolation one = found(Ailment::corrupts, {{"node1", 3}, {"node1", 4}});
       one.flaky = true;
       isolate(w, one);
     },
     {{.code = "collective-p2p-broken",
       .severity = blocker,
       .certainty = likely,
       .symptom = Symptom::wrong_result,
       .says = "between GPU 3 of node1 and GPU 4 of node1 corrupts; the same run went both ways",
       .blamed = {"node1"},
       .evidence = proof_rows(Ailment::corrupts, " -x NCCL_P2P_DISABLE=1"),
       .fixes = {"*: NCCL_P2P_DISABLE=1", "node1: (manual)"}}}},
    {"slower than the CPU's memory",
     [](World& w) { isolate(w, found(Ailment::slow)); },
     {{.code = "collective-p2p-slow",
       .severity = degraded,
       .certainty = proved,
       .symptom = Symptom::slow,
       .says = "is slow: 2.0 GB/s, and 12.0 GB/s without it",
       .blamed = {"node1"},
       .evidence = proof_rows(Ailment::slow, " -x NCCL_P2P_DISABLE=1"),
       .fixes = {"*: NCCL_P2P_DISABLE=1", "node1: (manual)"}}}},
    {"neither way inside a node works",
     [](World& w) {
       Isolation one = found(Ailment::fails);
       one.workaround["NCCL_SHM_DISABLE"] = "1";
       isolate(w, one);
     },
     {{.code = "collective-p2p-broken",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::crash,
       .says = "fails; so does the way by shared memory",
       .blamed = {"node1"},
       .evidence = proof_rows(Ailment::fails, " -x NCCL_P2P_DISABLE=1 -x NCCL_SHM_DISABLE=1"),
       .fixes = {"*: NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1", "node1: (manual)"}}}},
    {"is not used where it helps",
     [](World& w) {
       isolate(w, {.layer = Layer::p2p,
                   .ailment = Ailment::slow,
                   .workaround = {{"NCCL_P2P_LEVEL", "SYS"}}});
     },
     {{.code = "collective-p2p-unused",
       .severity = degraded,
       .certainty = proved,
       .symptom = Symptom::slow,
       .says = "peer-to-peer access that is there: 2.0 GB/s",
       .evidence = proof_rows(Ailment::slow, " -x NCCL_P2P_LEVEL=SYS"),
       .fixes = {"*: NCCL_P2P_LEVEL=SYS"}}}},
    {"near miss: another layer",
     [](World& w) {
       isolate(w, {.layer = Layer::gdr, .ailment = Ailment::hangs, .workaround = kOff});
     }},
    {"near miss: half of the proof is lost",
     [](World& w) {
       isolate(w, found(Ailment::hangs));
       lose_the_sound_run(w);
     }},
};

TEST_CASE("collective/p2p") {
  run_cases("collective/p2p", cases);
}

}  // namespace
}  // namespace distdoctor::testing
