#include "support/check_cases.h"
#include "support/fake_isolations.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

const std::string kLook =
    "node1: dmesg -T | grep -E 'Xid|AER'; nvidia-smi -q -d ECC,ROW_REMAPPER,PERFORMANCE";

Verdict verdict(const char* code,
                Ailment ailment,
                const std::string& says,
                const std::vector<std::string>& more = {}) {
  const bool slow = ailment == Ailment::slow;
  return {.code = code,
          .severity = slow ? degraded : blocker,
          .certainty = proved,
          .symptom = slow ? Symptom::slow : Symptom::hang,
          .says = says,
          .blamed = {"node1"},
          .evidence = with_rows(proof_rows(ailment, ""), more),
          .fixes = {kLook, "node1: (manual)"}};
}

Verdict no_fabric() {
  Verdict said = verdict("collective-node-no-fabric", Ailment::hangs,
                         "no collective starts on node1: its GPUs wait for the NVSwitch fabric");
  said.evidence = proof_rows(Ailment::hangs, "",
                             "cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized");
  said.fixes = {"node1: (manual)", "node1: (manual)"};
  return said;
}

Verdict elsewhere() {
  Verdict said = verdict("collective-node-bad", Ailment::hangs, "every collective on node0 hangs");
  said.blamed = {"node0"};
  said.evidence = proof_rows(Ailment::hangs, "", "system not yet initialized");
  said.fixes = {
      "node0: dmesg -T | grep -E 'Xid|AER'; nvidia-smi -q -d ECC,ROW_REMAPPER,PERFORMANCE",
      "node0: (manual)"};
  return said;
}

void place(World& world, Layer layer, Ailment ailment, int device) {
  isolate(world, {.layer = layer, .ailment = ailment, .places = {{"node1", device}}});
}

Verdict link(const std::string& says) {
  return {.code = "collective-link-bad",
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = {"node0", "node1"},
          .evidence = proof_rows(Ailment::hangs, ""),
          .fixes = {"*: (manual)"}};
}

void link_nodes(World& world) {
  isolate(
      world,
      {.layer = Layer::link, .ailment = Ailment::hangs, .places = {{"node0", -1}, {"node1", -1}}});
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a GPU",
     [](World& w) {
       w.node(1).nvml =
           Nvml{.gpus = {{.index = 1, .throttle = {"hw thermal"}, .ecc_uncorrected = 7}}};
       place(w, Layer::gpu, Ailment::hangs, 1);
     },
     {verdict("collective-gpu-bad",
              Ailment::hangs,
              "every collective on GPU 1 of node1 hangs, and the others work",
              {"node1 uncorrectable memory errors of GPU 1: 7, not 0; nvidia-smi -q -i 1",
               "node1 clocks of GPU 1: held down: hw thermal, not not held down; nvidia-smi -q -i "
               "1"})}},
    {"a node",
     [](World& w) { place(w, Layer::node, Ailment::hangs, -1); },
     {verdict("collective-node-bad", Ailment::hangs, "every collective on node1 hangs")}},
    {"a node whose GPUs wait for the fabric",
     [](World& w) {
       isolate(w, {.layer = Layer::node, .ailment = Ailment::hangs, .places = {{"node1", -1}}},
               "cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized");
     },
     {no_fabric()}},
    {"near miss: another node says so",
     [](World& w) {
       isolate(w, {.layer = Layer::node, .ailment = Ailment::hangs, .places = {{"node0", -1}}},
               "system not yet initialized");
     },
     {elsewhere()}},
    {"a slow node",
     [](World& w) { place(w, Layer::node, Ailment::slow, -1); },
     {verdict("collective-place-slow",
              Ailment::slow,
              "on node1 is slow, and the others work at speed: 2.0 GB/s, and 12.0 GB/s")}},
    {"a straggler",
     [](World& w) { place(w, Layer::straggler, Ailment::slow, 0); },
     {verdict("collective-straggler",
              Ailment::slow,
              "the part of the ranks on GPU 0 of node1 takes more than twice as long")}},
    {"a link between two of four nodes",
     link_nodes,
     {link("a collective of node0 and node1 hangs, though each works with others")}},
    {"two nodes, tested with each other only",
     [](World& w) {
       w.cluster.nodes.resize(2);
       link_nodes(w);
     },
     {link("they were tested with each other only")}},
    {"near miss: no place",
     [](World& w) { isolate(w, {.layer = Layer::gpu, .ailment = Ailment::hangs}); }},
    {"near miss: half of the proof is lost",
     [](World& w) {
       place(w, Layer::gpu, Ailment::hangs, 1);
       lose_the_sound_run(w);
     }},
    {"near miss: another layer", [](World& w) { place(w, Layer::p2p, Ailment::hangs, -1); }},
};

TEST_CASE("collective/place") {
  run_cases("collective/place", cases);
}

}  // namespace
}  // namespace distdoctor::testing
