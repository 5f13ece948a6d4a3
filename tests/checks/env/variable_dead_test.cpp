#include "checks/env/variables.h"

#include <string>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void with_nccl(World& w, const std::string& version) {
  for (NodeFacts& node : w.cluster.nodes) {
    World::change(node.nccl_library, [&](NcclLibrary& nccl) { nccl.version = version; });
  }
}

Verdict dead(const std::string& name, const std::string& value, const std::string& says) {
  return {.code = "env-variable-dead",
          .severity = notice,
          .certainty = likely,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = {"node1"},
          .evidence = {said_row(name, value, "a variable that this NCCL reads")},
          .fixes = {"node1: " + name + " unset"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"NVIDIA's container", nvidia_container},
    {"AWS with EFA", aws_efa},
    {"RCCL", amd_rccl},
    {"Google's TCPX", google_tcpx},
    {"a tuned InfiniBand cluster", tuned_infiniband},
    {"near miss: AMD's RCCL reads it",
     [](World& w) {
       w.node(1).gpu = GpuFacts{.gpus = {{.pci = "0000:c1:00.0", .vendor = GpuVendor::amd}}};
       say_on(w, 1, "NCCL_RINGS", "0 1 2 3");
       w.node(2).gpu = Unknown{Why::denied, "no"};
       World::change(w.node(2).software, [](Software& all) { all.torch_hip = "6.2"; });
       say_on(w, 2, "NCCL_RINGS", "0 1 2 3");
     }},
    {"of NCCL 1",
     [](World& w) { say_on(w, 1, "NCCL_IB_CUDA_SUPPORT", "0"); },
     {dead("NCCL_IB_CUDA_SUPPORT", "0", "NCCL_NET_GDR_LEVEL is what it reads")}},
    {"of NCCL 1, and nobody knows which it is now",
     [](World& w) {
       with_nccl(w, "");
       say_on(w, 1, "NCCL_TREE_THRESHOLD", "0");
     },
     {dead("NCCL_TREE_THRESHOLD", "0", "does nothing: NCCL no longer reads it")}},
    {"gone since 2.22",
     [](World& w) {
       with_nccl(w, "2.28.9");
       say_on(w, 1, "NCCL_WORK_FIFO_DEPTH", "64");
     },
     {dead("NCCL_WORK_FIFO_DEPTH", "64", "NCCL 2.28.9 no longer reads it")}},
    {"near miss: still there in 2.21, and nobody knows about none",
     [](World& w) {
       with_nccl(w, "2.21.5");
       say_on(w, 1, "NCCL_WORK_FIFO_DEPTH", "64");
       World::change(w.node(2).nccl_library, [](NcclLibrary& nccl) { nccl.version = ""; });
       say_on(w, 2, "NCCL_WORK_FIFO_DEPTH", "64");
       w.node(3).nccl_library = Unknown{Why::denied, "no"};
       say_on(w, 3, "NCCL_WORK_FIFO_DEPTH", "64");
     }},
    {"not yet there in 2.18",
     [](World& w) {
       with_nccl(w, "2.18.6");
       say_on(w, 1, "NCCL_IB_ADDR_RANGE", "10.0.0.0/8");
     },
     {dead("NCCL_IB_ADDR_RANGE", "10.0.0.0/8", "NCCL 2.18.6 does not read it yet: 2.21 is")}},
    {"near miss: there in 2.21, and an empty one",
     [](World& w) {
       with_nccl(w, "2.21.5");
       say_on(w, 1, "NCCL_IB_ADDR_RANGE", "10.0.0.0/8");
       say_on(w, 1, "NCCL_LL_THRESHOLD", "");
     }},
    {"blind",
     [](World& w) { w.node(2).settings = Unknown{Why::denied, "no"}; },
     {},
     {"node2 settings"}},
    {"a job without NCCL",
     [](World& w) {
       w.cluster.job.nccl = Use::no;
       say(w, "NCCL_LL_THRESHOLD", "0");
     }},
};

TEST_CASE("env/variable_dead") {
  run_cases("env/variable_dead", cases);
}

}  // namespace
}  // namespace distdoctor::testing
