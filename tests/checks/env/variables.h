// Variables on the nodes of a World, read as the prediction stage reads them; environments of
// healthy clusters.
#pragma once

#include "rules/nccl/variables.h"
#include "support/check_cases.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {

inline void say_on(World& w,
                   std::size_t node,
                   const std::string& name,
                   const std::string& value,
                   Source source = Source::option,
                   const std::string& where = "--env") {
  Prediction& prediction = w.prediction(node);
  prediction.settings[name] = {value,
                               {.source = source, .node = w.node(node).host, .where = where}};
  prediction.variables = rules::read_variables(prediction.settings);
}

inline void say(World& w,
                const std::string& name,
                const std::string& value,
                Source source = Source::option) {
  for (std::size_t node = 0; node < w.cluster.nodes.size(); ++node) {
    say_on(w, node, name, value, source);
  }
}

// "node1 NAME: VALUE (--env), not EXPECTED; printenv NAME".
inline std::string said_row(const std::string& name,
                            const std::string& value,
                            const std::string& expected) {
  return "node1 " + name + ": " + value + " (--env), not " + expected + "; printenv " + name;
}

using NamedValues = std::vector<std::pair<const char*, const char*>>;

inline void say_all(World& w, const NamedValues& variables) {
  for (const auto& [name, value] : variables) say(w, name, value);
}

// What the environments of healthy clusters hold.
inline void nvidia_container(World& w) {
  say_all(w, {{"NCCL_VERSION", "2.18.3-1"},
              {"NVIDIA_VISIBLE_DEVICES", "all"},
              {"NCCL_HOME", "/usr"},
              {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
              {"NCCL_ASYNC_ERROR_HANDLING", "1"}});
}
inline void aws_efa(World& w) {
  say_all(w, {{"FI_PROVIDER", "efa"},
              {"FI_EFA_USE_DEVICE_RDMA", "1"},
              {"NCCL_PROTO", "simple"},
              {"NCCL_OFI_TUNER_TYPE", "Region"},
              {"NCCL_TUNER_PLUGIN", "libnccl-ofi-tuner.so"},
              {"NCCL_DEBUG", "INFO"},
              {"NCCL_SOCKET_IFNAME", "^docker,lo,veth"},
              {"NCCL_NET_PLUGIN", "ofi"},
              {"NCCL_BUFFSIZE", "8388608"}});
}
inline void amd_rccl(World& w) {
  say_all(w, {{"RCCL_MSCCL_ENABLE", "0"},
              {"HSA_FORCE_FINE_GRAIN_PCIE", "1"},
              {"NCCL_ENABLE_DMABUF_SUPPORT", "1"},
              {"NCCL_IB_GID_INDEX", "3"},
              {"NCCL_MIN_NCHANNELS", "112"},
              {"NCCL_NET_GDR_LEVEL", "3"}});
}
inline void google_tcpx(World& w) {
  say_all(w, {{"NCCL_GPUDIRECTTCPX_SOCKET_IFNAME", "eth1,eth2,eth3,eth4"},
              {"NCCL_GPUDIRECTTCPX_CTRL_DEV", "eth0"},
              {"NCCL_FASTRAK_NUM_FLOWS", "2"},
              {"NCCL_FASTRAK_CTRL_DEV", "eth0"},
              {"NCCL_NET_GDR_LEVEL", "PIX"},
              {"NCCL_TUNER_CONFIG_PATH", "/usr/a3plus_tuner_config.textproto"},
              {"NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE", "/x"},
              {"NCCL_CROSS_NIC", "0"},
              {"NCCL_P2P_PXN_LEVEL", "0"},
              {"NCCL_ALGO", "Ring,Tree"},
              {"NCCL_PROTO", "Simple,LL128"},
              {"NCCL_NVLS_ENABLE", "0"},
              {"NCCL_DYNAMIC_CHUNK_SIZE", "524288"},
              {"NCCL_P2P_NET_CHUNKSIZE", "524288"}});
}
inline void tuned_infiniband(World& w) {
  say_all(w, {{"NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"},
              {"NCCL_IB_QPS_PER_CONNECTION", "4"},
              {"NCCL_IB_TIMEOUT", "22"},
              {"NCCL_IB_TC", "106"},
              {"NCCL_IB_GID_INDEX", "3"},
              {"NCCL_DEBUG", "WARN"},
              {"NCCL_DEBUG_SUBSYS", "INIT,NET"},
              {"NCCL_CROSS_NIC", "1"},
              {"NCCL_DEBUG_FILE", "/logs/nccl.%h.%p.log"},
              {"NCCL_MIN_NCHANNELS", "32"},
              {"NCCL_COLLNET_ENABLE", "1"},
              {"NCCL_SOCKET_FAMILY", "AF_INET"},
              {"NCCL_P2P_LEVEL", "NVL"},
              {"NCCL_IB_DISABLE", "0"},
              {"NCCL_P2P_DISABLE", "0"}});
}

}  // namespace distdoctor::testing
