#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict held(Severity severity, const std::string& why) {
  return {.code = "gpu-throttled",
          .severity = severity,
          .certainty = severity == degraded ? likely : possible,
          .symptom = Symptom::slow,
          .says = "the clocks of 1 GPU on node1 are held down",
          .blamed = {"node1"},
          .evidence = {"node1 GPU 0000:20:00.0 clocks held down by: " + why +
                       " at 91 C, not nothing but the power cap; nvidia-smi -q -i 0000:20:00.0 -d "
                       "PERFORMANCE,TEMPERATURE,POWER"},
          .fixes = {"node1: (manual)"}};
}

void throttle(World& w, std::vector<std::string> reasons) {
  add_nvml(w, 8);
  change_nvml_gpu(w, 1, [&](NvmlGpu& gpu) {
    gpu.throttle = std::move(reasons);
    gpu.temperature_c = 91;
  });
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_nvml(w, 8); }},
    {"healthy: at work, all run into the power cap",
     [](World& w) {
       add_nvml(w, 8);
       for (auto& node : w.cluster.nodes) World::change(node.nvml, be_busy);
     }},
    {"heat",
     [](World& w) { throttle(w, {"hw slowdown", "hw thermal"}); },
     {held(degraded, "hw slowdown, hw thermal")}},
    {"the power supply",
     [](World& w) { throttle(w, {"sw power cap", "hw power brake"}); },
     {held(degraded, "sw power cap, hw power brake")}},
    {"the driver trims: one look proves nothing",
     [](World& w) { throttle(w, {"sw thermal"}); },
     {held(notice, "sw thermal")}},
    {"nobody says why",
     [](World& w) { throttle(w, {"hw slowdown"}); },
     {held(notice, "hw slowdown")}},
    {"near miss: boost in step", [](World& w) { throttle(w, {"sync boost", "sw power cap"}); }},
};

TEST_CASE("gpu/throttle") {
  run_nvml_cases("gpu/throttle", cases);
}

}  // namespace
}  // namespace distdoctor::testing
