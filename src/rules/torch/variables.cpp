#include "rules/torch/variables.h"

#include "rules/slip.h"

#include <algorithm>
#include <array>
#include <string>

namespace distdoctor::rules {
namespace {

// Whose names may be misspelt ones of those below; what begins otherwise is somebody else's.
constexpr std::array<std::string_view, 4> kFamilies = {"MASTER_", "GLOO_", "TORCH_NCCL_",
                                                       "TORCH_DIST"};

// From PyTorch's sources, 1.13 to 2.8: rendezvous.py, ProcessGroupNCCL.hpp, ProcessGroupGloo.cpp,
// debug.cpp.
const KnownNames& known() {
  static const KnownNames names({"MASTER_ADDR",
                                 "MASTER_PORT",
                                 "GLOO_SOCKET_IFNAME",
                                 "GLOO_DEVICE_TRANSPORT",
                                 "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY",
                                 "GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT",
                                 "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE",
                                 "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_PATH",
                                 "TORCH_DISTRIBUTED_DEBUG",
                                 "TORCH_DIST_INIT_BARRIER",
                                 "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                 "TORCH_NCCL_AVOID_RECORD_STREAMS",
                                 "TORCH_NCCL_BCAST_UNIQUEID",
                                 "TORCH_NCCL_BLOCKING_WAIT",
                                 "TORCH_NCCL_COORD_CHECK_MILSEC",
                                 "TORCH_NCCL_CUDA_EVENT_CACHE",
                                 "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
                                 "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
                                 "TORCH_NCCL_DESYNC_DEBUG",
                                 "TORCH_NCCL_DUMP_ON_TIMEOUT",
                                 "TORCH_NCCL_ENABLE_MONITORING",
                                 "TORCH_NCCL_ENABLE_TIMING",
                                 "TORCH_NCCL_EXTRA_DUMP_ON_EXEC",
                                 "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
                                 "TORCH_NCCL_HIGH_PRIORITY",
                                 "TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN",
                                 "TORCH_NCCL_NAN_CHECK",
                                 "TORCH_NCCL_NONBLOCKING_TIMEOUT",
                                 "TORCH_NCCL_PROPAGATE_ERROR",
                                 "TORCH_NCCL_RANKS_PER_ROOT",
                                 "TORCH_NCCL_RETHROW_CUDA_ERRORS",
                                 "TORCH_NCCL_TRACE_BUFFER_SIZE",
                                 "TORCH_NCCL_TRACE_CPP_STACK",
                                 "TORCH_NCCL_USE_COMM_NONBLOCKING",
                                 "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
                                 "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"});
  return names;
}

// MASTER_PORT2 is a second port, not a slip.
bool ends_with_digit(std::string_view name) {
  return !name.empty() && name.back() >= '0' && name.back() <= '9';
}

}  // namespace

std::optional<std::string_view> meant_by_torch(std::string_view name) {
  const auto begins_it = [&](std::string_view family) { return name.starts_with(family); };
  if (std::ranges::none_of(kFamilies, begins_it) || ends_with_digit(name)) return std::nullopt;
  return known().meant(name);
}

std::vector<VariableReading> misspelt_for_torch(const Settings& settings) {
  std::vector<VariableReading> readings;
  for (const auto& [name, setting] : settings) {
    const auto meant = meant_by_torch(name);
    if (!meant || settings.contains(std::string(*meant))) continue;
    readings.push_back(
        {.name = name, .taken_as = std::string(*meant), .trap = VariableTrap::misspelt});
  }
  return readings;
}

}  // namespace distdoctor::rules
