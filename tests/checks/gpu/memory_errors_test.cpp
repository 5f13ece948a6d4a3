#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict memory(const std::string& code,
               Severity severity,
               const std::string& what,
               const std::string& seen,
               const std::string& expected) {
  return {.code = code,
          .severity = severity,
          .certainty = code == "gpu-memory-errors" ? possible : likely,
          .symptom = Symptom::crash,
          .says = "1 GPU on node1 ",
          .blamed = {"node1"},
          .evidence = {"node1 GPU 0000:20:00.0 " + what + ": " + seen +
                       " uncorrected errors since the driver was loaded, 9 ever, not " + expected +
                       "; nvidia-smi -q -i 0000:20:00.0 -d ECC,ROW_REMAPPER,PAGE_RETIREMENT"},
          .fixes = {"node1: (manual)"}};
}

template <class Change>
void hurt(World& w, Change change) {
  add_nvml(w, 8);
  change_nvml_gpu(w, 1, [&](NvmlGpu& gpu) {
    gpu.ecc_uncorrected_ever = 9;
    change(gpu);
  });
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_nvml(w, 8); }},
    {"near miss: errors of another year", [](World& w) { hurt(w, [](NvmlGpu&) {}); }},
    {"near miss: a card that does not count",
     [](World& w) { add_nvml(w, 2, {.data_center = false}); },
     {},
     {},
     "no GPU counts errors of its memory"},
    {"errors since the driver was loaded",
     [](World& w) { hurt(w, [](NvmlGpu& gpu) { gpu.ecc_uncorrected = 2; }); },
     {memory("gpu-memory-errors", notice, "memory errors", "2", "none")}},
    {"a row waits for a reset",
     [](World& w) {
       hurt(w, [](NvmlGpu& gpu) {
         gpu.ecc_uncorrected = 1;
         gpu.remap_pending = true;
       });
     },
     {memory(
         "gpu-memory-repair-pending", degraded, "memory repair", "pending; 1", "nothing pending")}},
    {"a page, before Ampere",
     [](World& w) { hurt(w, [](NvmlGpu& gpu) { gpu.retire_pending = true; }); },
     {memory(
         "gpu-memory-repair-pending", degraded, "memory repair", "pending; 0", "nothing pending")}},
    {"no row to spare",
     [](World& w) {
       hurt(w, [](NvmlGpu& gpu) {
         gpu.remap_pending = true;
         gpu.remap_failed = true;
       });
     },
     {memory("gpu-memory-broken", degraded, "row remapping", "failed; 0", "no failure")}},
    {"a job without NCCL",
     [](World& w) {
       hurt(w, [](NvmlGpu& gpu) { gpu.remap_failed = true; });
       w.cluster.job.nccl = Use::no;
     },
     {memory("gpu-memory-broken", notice, "row remapping", "failed; 0", "no failure")}},
};

TEST_CASE("gpu/memory_errors") {
  run_nvml_cases("gpu/memory_errors", cases);
}

}  // namespace
}  // namespace distdoctor::testing
