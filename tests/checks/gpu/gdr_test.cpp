#include "checks/gpu/gdr_nodes.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

template <class Change>
void change_gpu(World& w, Change change) {
  World::change(w.node(1).gpu, change);
}

void set_kernel(World& w, const std::string& release) {
  World::change(w.node(1).identity, [&](Identity& identity) { identity.kernel = release; });
}

void no_peermem(GpuFacts& gpu) {
  gpu.peermem = false;
}

Verdict disabled(Severity severity, const std::string& why) {
  return {.code = "gpu-gdr-disabled",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::slow,
          .says = "RDMA cards of node1 cannot read and write GPU memory themselves",
          .blamed = {"node1"},
          .evidence = {"node1 nvidia_peermem: not loaded, and no DMA-BUF with this " + why +
                       ", not loaded; lsmod | grep -E 'nvidia_peermem|nv_peer_mem'; head -1 "
                       "/proc/driver/nvidia/version; uname -r"},
          .fixes = {"node1: modprobe nvidia-peermem"}};
}

Verdict by_hand_in_container() {
  Verdict verdict = disabled(degraded, "NVIDIA module");
  verdict.fixes = {"node1: (manual)"};
  return verdict;
}

void move_card(World& w, int numa) {
  World::change(w.node(1).pci, [&](Pci& pci) {
    auto& card = device_at(pci, "0000:11:00.0");
    card.above = {"0000:00:07.0"};
    card.numa = numa;
  });
}

Verdict far(const std::string& distance) {
  const auto row = [&](const std::string& gpu) {
    return "node1 distance of GPU " + gpu + " to 0000:11:00.0: " + distance +
           ", not PIX or PXB; nvidia-smi topo -m";
  };
  return {.code = "gpu-nic-far",
          .severity = notice,
          .certainty = possible,
          .symptom = Symptom::slow,
          .says = "no GPU of node1 shares a PCIe root port",
          .blamed = {"node1"},
          .evidence = {row("0000:10:00.0"), row("0000:20:00.0")},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { with_card(w); }},
    {"healthy: no RDMA",
     [](World& w) { add_gpus(w, 2); },
     {},
     {},
     "no RDMA card that GPUs could use carries the job's data"},
    {"healthy: the open module's DMA-BUF does it",
     [](World& w) {
       with_card(w);
       change_gpu(w, no_peermem);
       set_kernel(w, "5.12.0");
     }},
    {"no module, and the closed driver",
     [](World& w) {
       with_card(w);
       change_gpu(w, [](GpuFacts& gpu) {
         gpu.peermem = false;
         gpu.nvidia_open = false;
       });
     },
     {disabled(degraded, "NVIDIA module")}},
    {"in a container it is the host's to load",
     [](World& w) {
       with_card(w);
       change_gpu(w, [](GpuFacts& gpu) { gpu.peermem = gpu.nvidia_open = false; });
       World::change(w.node(1).identity, [](Identity& it) { it.container = "docker"; });
     },
     {by_hand_in_container()}},
    {"an old kernel",
     [](World& w) {
       with_card(w);
       change_gpu(w, no_peermem);
       set_kernel(w, "5.4.0-150-generic");
     },
     {disabled(degraded, "kernel")}},
    {"near miss: Red Hat's 4.18 has it",
     [](World& w) {
       with_card(w);
       change_gpu(w, no_peermem);
       set_kernel(w, "4.18.0-513.el8.x86_64");
     }},
    {"DMA-BUF was switched off",
     [](World& w) {
       with_card(w);
       change_gpu(w, no_peermem);
       w.set("NCCL_DMABUF_ENABLE", "0");
     },
     {disabled(degraded, "kernel")}},
    {"it may use NCCL",
     [](World& w) {
       with_card(w);
       change_gpu(w, [](GpuFacts& gpu) { gpu.peermem = gpu.nvidia_open = false; });
       w.cluster.job.nccl = Use::maybe;
     },
     {disabled(notice, "NVIDIA module")}},
    {"near miss: sockets carry the data",
     [](World& w) {
       with_card(w);
       change_gpu(w, [](GpuFacts& gpu) { gpu.peermem = gpu.nvidia_open = false; });
       w.set("NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "no RDMA card that GPUs could use carries the job's data"},
    {"near miss: another kind of card",
     [](World& w) {
       with_card(w, "efa");
       change_gpu(w, [](GpuFacts& gpu) { gpu.peermem = gpu.nvidia_open = false; });
     },
     {},
     {},
     "no RDMA card that GPUs could use carries the job's data"},
    {"near miss: GeForce has none",
     [](World& w) {
       with_card(w);
       change_gpu(w, [](GpuFacts& gpu) {
         gpu.peermem = gpu.nvidia_open = false;
         for (Gpu& one : gpu.gpus) one.model = "NVIDIA GeForce RTX 4090";
       });
     }},
    {"a card by way of the CPU",
     [](World& w) {
       with_card(w);
       move_card(w, 0);
     },
     {far("PHB")}},
    {"a card at the other CPU; that nothing could use it directly comes second",
     [](World& w) {
       with_card(w);
       move_card(w, 1);
       change_gpu(w, [](GpuFacts& gpu) { gpu.peermem = gpu.nvidia_open = false; });
     },
     {far("SYS")}},
    {"near miss: a guest's bus is made up",
     [](World& w) {
       with_card(w);
       move_card(w, 1);
       World::change(w.node(1).pci, [](Pci& pci) { pci.virtual_machine = true; });
     }},
    {"unknown facts are gaps, where there is anything to see",
     [](World& w) {
       with_card(w);
       w.node(0).gpu = Unknown{.kind = Why::timed_out};
       w.node(1).rdma = Unknown{.kind = Why::failed};
       w.node(2).pci = Unknown{.kind = Why::denied};
     },
     {},
     {"node0 gpu", "node1 rdma", "node2 pci"}},
};

TEST_CASE("gpu/gdr") {
  run_cases("gpu/gdr", cases);
}

}  // namespace
}  // namespace distdoctor::testing
