#include "checks/software/nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

const std::string kOwn = "/venv/site-packages/nvidia/nccl/lib/libnccl.so.2";

void copies(World& w, const char* first, const char* version, const char* own) {
  on(w, 1, [&](Software& software) {
    software.torch = "2.8.0+cu128";
    software.torch_path = "/venv/site-packages/torch";
    software.nccl = {{.path = first, .version = version, .origin = "LD_LIBRARY_PATH"},
                     {.path = kOwn, .version = own, .origin = "DT_RUNPATH of libtorch_cuda.so"}};
  });
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}, {}, {}, "no PyTorch was found that brings its own NCCL"},
    {"the module's NCCL goes first",
     [](World& w) { copies(w, "/apps/cuda/lib/libnccl.so.2", "2.14.3", "2.27.3"); },
     {{.code = "software-nccl-replaced",
       .severity = notice,
       .certainty = possible,
       .symptom = Symptom::crash,
       .says = "on node1 NCCL 2.14.3 goes before the 2.27.3 that came with PyTorch 2.8.0+cu128",
       .blamed = {"node1"},
       .evidence =
           {"node1 NCCL: 2.14.3 /apps/cuda/lib/libnccl.so.2 (LD_LIBRARY_PATH), not 2.27.3 " + kOwn +
            " (DT_RUNPATH of libtorch_cuda.so); ldconfig -p | grep libnccl.so.2; echo "
            "\"$LD_PRELOAD "
            "$LD_LIBRARY_PATH\""},
       .fixes = {"node1: (manual)"}}}},
    {"near miss: a patch release apart",
     [](World& w) { copies(w, "/apps/cuda/lib/libnccl.so.2", "2.27.5", "2.27.3"); }},
    {"near miss: its own goes first",
     [](World& w) {
       copies(w, "/apps/cuda/lib/libnccl.so.2", "2.14.3", "2.27.3");
       on(w, 1, [](Software& software) { std::swap(software.nccl[0], software.nccl[1]); });
     }},
    {"near miss: a version that nobody knows",
     [](World& w) { copies(w, "/apps/cuda/lib/libnccl.so.2", "", "2.27.3"); }},
    {"near miss: PyTorch brought none",
     [](World& w) {
       copies(w, "/apps/cuda/lib/libnccl.so.2", "2.14.3", "2.27.3");
       on(w, 1, [](Software& software) { software.nccl.pop_back(); });
     },
     {},
     {},
     "no PyTorch was found that brings its own NCCL"},
    {"near miss: a job on Gloo",
     [](World& w) {
       copies(w, "/apps/cuda/lib/libnccl.so.2", "2.14.3", "2.27.3");
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"nobody looked: a gap",
     [](World& w) { w.node(1).software = Unknown{.kind = Why::timed_out}; },
     {},
     {"node1 software"},
     "no PyTorch was found that brings its own NCCL"},
};

TEST_CASE("software/nccl_copies") {
  run_cases("software/nccl_copies", cases);
}

}  // namespace
}  // namespace distdoctor::testing
