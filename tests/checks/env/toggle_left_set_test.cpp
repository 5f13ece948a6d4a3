#include "checks/env/variables.h"

namespace distdoctor::testing {
namespace {

using enum Severity;

constexpr const char* kExpected = "unset, unless there is a reason";

Verdict left_on(const std::string& code,
                Severity severity,
                const std::string& name,
                const std::string& value,
                const std::string& says,
                Symptom symptom = Symptom::slow) {
  return {.code = code,
          .severity = severity,
          .certainty = Certainty::likely,
          .symptom = symptom,
          .says = says,
          .blamed = {"node1"},
          .evidence = {said_row(name, value, kExpected)},
          .fixes = {"node1: " + name + " unset"}};
}

Verdict toggle(Severity severity,
               const std::string& name,
               const std::string& value,
               const std::string& says) {
  return left_on("env-toggle-left-set", severity, name, value, says);
}

void gpus(World& w, const std::string& model, int count = 8) {
  GpuFacts facts{.nvidia_driver = "550.54.15", .peermem = true};
  Devices devices = *w.node(1).devices;
  for (int i = 0; i < count; ++i) {
    facts.gpus.push_back({.pci = "0000:1" + std::to_string(i) + ":00.0", .model = model});
    devices.gpus.push_back("/dev/nvidia" + std::to_string(i));
  }
  w.node(1).gpu = facts;
  w.node(1).devices = devices;
}

void rdma(World& w,
          RdmaLayer layer,
          double gbps,
          int count,
          const std::string& driver = "mlx5_core",
          const std::string& state = "ACTIVE") {
  Rdma facts;
  for (int i = 0; i < count; ++i) {
    facts.devices.push_back({.name = "mlx5_" + std::to_string(i),
                             .driver = driver,
                             .ports = {{.state = state, .layer = layer, .rate_gbps = gbps}}});
  }
  w.node(1).rdma = facts;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"NVIDIA's container", nvidia_container},
    {"AWS with EFA",
     [](World& w) {
       aws_efa(w);
       rdma(w, RdmaLayer::other, 100, 4, "efa");
       say(w, "NCCL_IB_DISABLE", "1");
     }},
    {"RCCL", amd_rccl},
    {"Google's TCPX", google_tcpx},
    {"a tuned InfiniBand cluster",
     [](World& w) {
       tuned_infiniband(w);
       gpus(w, "NVIDIA H100 80GB HBM3");
       rdma(w, RdmaLayer::infiniband, 400, 8);
     }},
    {"peer-to-peer",
     [](World& w) { say_on(w, 1, "NCCL_P2P_DISABLE", "1"); },
     {toggle(notice,
             "NCCL_P2P_DISABLE",
             "1",
             "NCCL_P2P_DISABLE=1 on node1: GPUs of a node do not reach each other's memory")}},
    {"peer-to-peer where NVLink is",
     [](World& w) {
       say_on(w, 1, "NCCL_P2P_DISABLE", "1");
       gpus(w, "NVIDIA H100 80GB HBM3");
     },
     {toggle(degraded, "NCCL_P2P_DISABLE", "1", "GPUs of a node")}},
    {"peer-to-peer of consumer GPUs may be right",
     [](World& w) {
       say_on(w, 1, "NCCL_P2P_DISABLE", "1");
       gpus(w, "NVIDIA GeForce RTX 4090");
     },
     {toggle(notice, "NCCL_P2P_DISABLE", "1", "GPUs of a node")}},
    {"one GPU has no peer",
     [](World& w) {
       say_on(w, 1, "NCCL_P2P_DISABLE", "1");
       gpus(w, "NVIDIA H100 80GB HBM3", 1);
     },
     {toggle(notice, "NCCL_P2P_DISABLE", "1", "GPUs of a node")}},
    {"peer-to-peer by level",
     [](World& w) {
       say_on(w, 1, "NCCL_P2P_LEVEL", "0");
       gpus(w, "NVIDIA A100-SXM4-80GB");
     },
     {left_on("env-path-level", degraded, "NCCL_P2P_LEVEL", "0", "GPUs of a node")}},
    {"GPUDirect RDMA by level",
     [](World& w) {
       say_on(w, 1, "NCCL_NET_GDR_LEVEL", "LOC");
       gpus(w, "NVIDIA A100-SXM4-80GB");
       rdma(w, RdmaLayer::infiniband, 200, 4);
     },
     {left_on("env-path-level", degraded, "NCCL_NET_GDR_LEVEL", "LOC", "through host memory")}},
    {"the same without hardware for it",
     [](World& w) { say_on(w, 1, "NCCL_NET_GDR_LEVEL", "LOC"); },
     {left_on("env-path-level", notice, "NCCL_NET_GDR_LEVEL", "LOC", "through host memory")}},
    {"one fast NIC is no fabric",
     [](World& w) {
       say_on(w, 1, "NCCL_NET_GDR_LEVEL", "LOC");
       gpus(w, "NVIDIA A100-SXM4-80GB");
       rdma(w, RdmaLayer::ethernet, 100, 1);
     },
     {left_on("env-path-level", notice, "NCCL_NET_GDR_LEVEL", "LOC", "through host memory")}},
    {"a fabric of RoCE",
     [](World& w) {
       say_on(w, 1, "NCCL_NET_GDR_LEVEL", "LOC");
       gpus(w, "NVIDIA A100-SXM4-80GB");
       rdma(w, RdmaLayer::ethernet, 200, 8);
     },
     {left_on("env-path-level", degraded, "NCCL_NET_GDR_LEVEL", "LOC", "through host memory")}},
    {"software RDMA is no loss",
     [](World& w) {
       say_on(w, 1, "NCCL_NET_GDR_LEVEL", "LOC");
       gpus(w, "NVIDIA A100-SXM4-80GB");
       rdma(w, RdmaLayer::ethernet, 200, 8, "rdma_rxe");
     },
     {left_on("env-path-level", notice, "NCCL_NET_GDR_LEVEL", "LOC", "through host memory")}},
    {"ports that are down",
     [](World& w) {
       say_on(w, 1, "NCCL_NET_GDR_LEVEL", "LOC");
       gpus(w, "NVIDIA A100-SXM4-80GB");
       rdma(w, RdmaLayer::infiniband, 200, 8, "mlx5_core", "DOWN");
     },
     {left_on("env-path-level", notice, "NCCL_NET_GDR_LEVEL", "LOC", "through host memory")}},
    {"near miss: RDMA that is switched off is told elsewhere",
     [](World& w) {
       say(w, "NCCL_IB_DISABLE", "1");
       rdma(w, RdmaLayer::infiniband, 200, 8);
     }},
    {"near miss: true is 0, and told elsewhere",
     [](World& w) {
       say(w, "NCCL_IB_DISABLE", "true");
       say(w, "NCCL_CUMEM_ENABLE", "true");
       rdma(w, RdmaLayer::infiniband, 200, 1);
     }},
    {"kernels one by one, where GPUs are",
     [](World& w) {
       say_on(w, 1, "CUDA_LAUNCH_BLOCKING", "1");
       gpus(w, "NVIDIA L4", 1);
     },
     {toggle(degraded, "CUDA_LAUNCH_BLOCKING", "1", "every kernel is waited for")}},
    {"torch's own switch is read without NCCL, too",
     [](World& w) {
       say_on(w, 1, "TORCH_DISTRIBUTED_DEBUG", "detail");
       say_on(w, 1, "NCCL_CHECK_POINTERS", "1");
       w.cluster.job.nccl = Use::no;
     },
     {toggle(notice, "TORCH_DISTRIBUTED_DEBUG", "detail", "compared over all ranks")}},
    {"a few more",
     [](World& w) {
       for (const auto& [name, value] : NamedValues{{"NCCL_SHM_DISABLE", "1"},
                                                    {"NCCL_CUMEM_ENABLE", "0"},
                                                    {"NCCL_NVLS_ENABLE", "0"},
                                                    {"NCCL_CHECK_POINTERS", "1"},
                                                    {"NCCL_DEBUG", "trace"},
                                                    {"NCCL_MAX_NCHANNELS", "1"},
                                                    {"NCCL_GDR_FLUSH_DISABLE", "1"}}) {
         say_on(w, 1, name, value);
       }
     },
     {toggle(notice, "NCCL_SHM_DISABLE", "1", "use the network"),
      toggle(notice, "NCCL_CUMEM_ENABLE", "0", "legacy IPC"),
      toggle(notice, "NCCL_NVLS_ENABLE", "0", "NVLink SHARP"),
      toggle(notice, "NCCL_CHECK_POINTERS", "1", "each call"),
      toggle(notice, "NCCL_DEBUG", "trace", "for every call"),
      toggle(notice, "NCCL_MAX_NCHANNELS", "1", "so few channels"),
      left_on("env-toggle-left-set",
              notice,
              "NCCL_GDR_FLUSH_DISABLE",
              "1",
              "not yet written",
              Symptom::wrong_result)}},
    {"what may be wrong, and what PyTorch does not expect",
     [](World& w) {
       say_on(w, 1, "NCCL_BUFFSIZE", "262144");
       say_on(w, 1, "NCCL_COMM_BLOCKING", "0");
       say_on(w, 1, "NCCL_NET_FORCE_MERGE", "mlx5_0,mlx5_1");
     },
     {toggle(notice, "NCCL_BUFFSIZE", "262144", "so small a buffer"),
      left_on("env-toggle-left-set",
              notice,
              "NCCL_COMM_BLOCKING",
              "0",
              "no longer what PyTorch asked for",
              Symptom::hang),
      left_on("env-toggle-left-set",
              notice,
              "NCCL_NET_FORCE_MERGE",
              "mlx5_0,mlx5_1",
              "NICs become one device",
              Symptom::wrong_result)}},
    {"near miss: set to nothing, and a buffer of the usual size",
     [](World& w) {
       say_on(w, 1, "NCCL_BUFFSIZE", "1048576");
       say_on(w, 1, "NCCL_NET_FORCE_MERGE", "");
     }},
    {"near miss: more channels, INFO, the other way round",
     [](World& w) {
       for (const auto& [name, value] : NamedValues{{"NCCL_MAX_NCHANNELS", "16"},
                                                    {"NCCL_DEBUG", "INFO"},
                                                    {"NCCL_CUMEM_ENABLE", "1"},
                                                    {"NCCL_NVLS_ENABLE", "1"},
                                                    {"NCCL_NTHREADS", "512"},
                                                    {"NCCL_P2P_LEVEL", "SYS"},
                                                    {"CUDA_LAUNCH_BLOCKING", "0"},
                                                    {"TORCH_DISTRIBUTED_DEBUG", "INFO"}}) {
         say(w, name, value);
       }
     }},
    {"nobody knows whether NCCL is used",
     [](World& w) {
       say_on(w, 1, "NCCL_P2P_DISABLE", "1");
       gpus(w, "NVIDIA H100 80GB HBM3");
       w.cluster.job.nccl = Use::maybe;
     },
     {toggle(notice, "NCCL_P2P_DISABLE", "1", "GPUs of a node")}},
    {"a login shell is no evidence of the job",
     [](World& w) {
       say_on(w, 1, "NCCL_P2P_DISABLE", "1", Source::environment);
       gpus(w, "NVIDIA H100 80GB HBM3");
       w.node(1).context = Context::ssh;
     },
     {toggle(notice, "NCCL_P2P_DISABLE", "1", "GPUs of a node")}},
};

TEST_CASE("env/toggle_left_set") {
  run_cases("env/toggle_left_set", cases);
}

}  // namespace
}  // namespace distdoctor::testing
