#include "support/check_cases.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

void status(World& w, const std::string& read, const std::string& write) {
  add_nvml(w, 4);
  World::change(w.node(1).nvml, [&](Nvml& nvml) {
    nvml.pairs.at(2).p2p_read = read;
    nvml.pairs.at(2).p2p_write = write;
  });
}

const Verdict kOff = {
    .code = "gpu-p2p-switched-off",
    .severity = Severity::notice,
    .certainty = Certainty::possible,
    .symptom = Symptom::slow,
    .says = "deny direct access between GPUs (1 of 6 pairs)",
    .blamed = {"node1"},
    .evidence = {"node1 P2P between GPU 0 and GPU 3: disabled by regkey, not ok, or not supported; "
                 "nvidia-smi topo -p2p r; grep -r RegistryDwords /etc/modprobe.d "
                 "/proc/driver/nvidia/params"},
    .fixes = {"node1: (manual)"}};

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_nvml(w, 4); }},
    {"somebody set it", [](World& w) { status(w, "disabled by regkey", "ok"); }, {kOff}},
    {"for writing only", [](World& w) { status(w, "ok", "disabled by regkey"); }, {kOff}},
    {"near miss: the machine is built so",
     [](World& w) { status(w, "chipset not supported", "not supported"); }},
    {"near miss: a job without NCCL",
     [](World& w) {
       status(w, "disabled by regkey", "ok");
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does not use NCCL"},
    {"one GPU on each node",
     [](World& w) { add_nvml(w, 1); },
     {},
     {},
     "no driver tells whether two GPUs reach each other"},
    {"a driver that told nothing is a gap",
     [](World& w) {
       add_nvml(w, 2);
       w.node(2).nvml = Unknown{.kind = Why::timed_out};
     },
     {},
     {"node2 nvml"}},
};

TEST_CASE("gpu/peer_access") {
  run_cases("gpu/peer_access", cases);
}

}  // namespace
}  // namespace distdoctor::testing
