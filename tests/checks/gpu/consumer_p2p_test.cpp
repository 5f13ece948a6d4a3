#include "support/check_cases.h"
#include "support/gpu_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

void geforce(World& w, int count, const std::string& driver, const char* model = "4090") {
  add_gpus(w, count, std::string("NVIDIA GeForce RTX ") + model);
  for (auto& node : w.cluster.nodes) {
    const bool odd = node.host == "node1";
    World::change(node.gpu, [&](GpuFacts& gpu) { gpu.nvidia_driver = odd ? driver : "550.120"; });
  }
}

Verdict claims(const std::string& driver) {
  return {.code = "gpu-consumer-p2p",
          .severity = Severity::notice,
          .certainty = Certainty::possible,
          .symptom = Symptom::hang,
          .says = "2 GeForce cards of node1 have no peer-to-peer access",
          .blamed = {"node1"},
          .evidence = {"node1 NVIDIA kernel module: " + driver +
                       ", not 525.105 or newer; head -1 "
                       "/proc/driver/nvidia/version; nvidia-smi -L"},
          .fixes = {"*: NCCL_P2P_DISABLE=1", "node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy: today's driver", [](World& w) { geforce(w, 2, "550.120"); }},
    {"an early driver", [](World& w) { geforce(w, 2, "525.60.11"); }, {claims("525.60.11")}},
    {"the first one", [](World& w) { geforce(w, 2, "520.56.06"); }, {claims("520.56.06")}},
    {"near miss: the one that mends it", [](World& w) { geforce(w, 2, "525.105.17"); }},
    {"near miss: one card",
     [](World& w) { geforce(w, 1, "525.60.11"); },
     {},
     {},
     "no node has two GeForce RTX 40 cards"},
    {"near miss: cards with NVLink",
     [](World& w) { geforce(w, 2, "525.60.11", "3090"); },
     {},
     {},
     "no node has two GeForce RTX 40 cards"},
    {"near miss: it is off already",
     [](World& w) {
       geforce(w, 2, "525.60.11");
       set_p2p_disable(w, "1", "1");
     }},
    {"near miss: NCCL takes 0x1 for 1",
     [](World& w) {
       geforce(w, 2, "525.60.11");
       set_p2p_disable(w, "0x1", "1");
     }},
    {"near miss: the driver was asked, and denies it",
     [](World& w) {
       geforce(w, 2, "525.60.11");
       w.node(1).nvml = Nvml{.pairs = {{.a = 0, .b = 1, .p2p_read = "chipset not supported"}}};
     }},
    {"the driver was asked, and claims it",
     [](World& w) {
       geforce(w, 2, "525.60.11");
       w.node(1).nvml = Nvml{.pairs = {{.a = 0, .b = 1, .p2p_read = "ok"}}};
     },
     {claims("525.60.11")}},
    {"NCCL takes `true` for no",
     [](World& w) {
       geforce(w, 2, "525.60.11");
       set_p2p_disable(w, "true", "0");
     },
     {claims("525.60.11")}},
    {"near miss: a Gloo job",
     [](World& w) {
       geforce(w, 2, "525.60.11");
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does not use NCCL"},
    {"unknown GPUs are a gap",
     [](World& w) { w.node(2).gpu = Unknown{.kind = Why::timed_out}; },
     {},
     {"node2 gpu"},
     "no node has two GeForce RTX 40 cards"},
};

TEST_CASE("gpu/consumer_p2p") {
  run_cases("gpu/consumer_p2p", cases);
}

}  // namespace
}  // namespace distdoctor::testing
