#include "checks/software/nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

auto torch(const char* version, const char* cuda) {
  return [=](Software& software) {
    software.torch = version;
    software.torch_cuda = cuda;
    software.torch_path = "/venv/torch";
  };
}

Verdict differs(const char* code,
                Severity severity,
                Certainty certainty,
                const std::string& says,
                const std::string& row) {
  return {.code = code,
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::crash,
          .says = says,
          .blamed = {"node2"},
          .evidence = {"node2 " + row +
                       "; python3 -c 'import torch; print(torch.__version__, torch.version.cuda, "
                       "torch.__file__)'"},
          .fixes = {"*: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy, no torch", [](World&) {}, {}, {}, "PyTorch was found on fewer than two nodes"},
    {"healthy, one torch", [](World& w) { on_all(w, torch("2.8.0+cu128", "12.8")); }},
    {"another release, and ranks that run",
     [](World& w) {
       on_all(w, torch("2.8.0+cu128", "12.8"));
       on(w, 2, torch("2.1.2+cu121", "12.1"));
       running(w);
     },
     {differs("software-torch-differs",
              degraded,
              likely,
              "1 of 4 nodes do not have PyTorch 2.8.0: ranks of two versions",
              "PyTorch: 2.1.2+cu121, CUDA 12.1 (/venv/torch), not 2.8.0")}},
    {"another release that a login would import: a notice",
     [](World& w) {
       on_all(w, torch("2.8.0+cu128", "12.8"));
       on(w, 2, torch("2.1.2+cu121", "12.1"));
       seen_by_ssh(w);
     },
     {differs("software-torch-differs",
              notice,
              possible,
              "1 of 4 nodes do not have PyTorch 2.8.0",
              "PyTorch: 2.1.2+cu121, CUDA 12.1 (/venv/torch), not 2.8.0")}},
    {"another build",
     [](World& w) {
       on_all(w, torch("2.8.0+cu128", "12.8"));
       on(w, 2, torch("2.8.0+cpu", ""));
       running(w);
     },
     {differs("software-torch-build-differs",
              notice,
              likely,
              "1 of 4 nodes do not have PyTorch for CUDA 12.8",
              "PyTorch for: 2.8.0+cpu, no GPU (/venv/torch), not CUDA 12.8")}},
    {"near miss: a node without torch",
     [](World& w) {
       on_all(w, torch("2.8.0+cu128", "12.8"));
       on(w, 2, torch("", ""));
     }},
    {"nobody looked: a gap",
     [](World& w) { w.node(1).software = Unknown{.kind = Why::timed_out}; },
     {},
     {"node1 software"},
     "PyTorch was found on fewer than two nodes"},
};

TEST_CASE("software/torch_versions") {
  run_cases("software/torch_versions", cases);
}

}  // namespace
}  // namespace distdoctor::testing
