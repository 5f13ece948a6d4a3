#include "workers/vendor/nvml_library.h"

#include "workers/vendor/shared_library.h"

#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace distdoctor::vendor::nvml {
namespace {

// The first of the names that the library has; the newest stands first.
template <class Function>
void find(const SharedLibrary& from,
          Function*& function,
          std::initializer_list<const char*> names) {
  for (const char* name : names) {
    function = from.find<Function>(name);
    if (function != nullptr) return;
  }
}

void find_system(const SharedLibrary& from, Library& library) {
  find(from, library.init, {"nvmlInit_v2"});
  find(from, library.shutdown, {"nvmlShutdown"});
  find(from, library.driver_version, {"nvmlSystemGetDriverVersion"});
  find(from, library.cuda_version,
       {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  find(from, library.device_count, {"nvmlDeviceGetCount_v2"});
  find(from, library.device_by_index, {"nvmlDeviceGetHandleByIndex_v2"});
}

void find_device(const SharedLibrary& from, Library& library) {
  find(from, library.name, {"nvmlDeviceGetName"});
  find(from, library.uuid, {"nvmlDeviceGetUUID"});
  find(from, library.pci, {"nvmlDeviceGetPciInfo_v3"});
  find(from, library.capability, {"nvmlDeviceGetCudaComputeCapability"});
  find(from, library.compute_mode, {"nvmlDeviceGetComputeMode"});
  find(from, library.mig_mode, {"nvmlDeviceGetMigMode"});
  find(from, library.clocks_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(from, library.utilization, {"nvmlDeviceGetUtilizationRates"});
  find(from, library.performance_state, {"nvmlDeviceGetPerformanceState"});
  find(from, library.total_ecc, {"nvmlDeviceGetTotalEccErrors"});
  find(from, library.remapped_rows, {"nvmlDeviceGetRemappedRows"});
  find(from, library.retired_pending, {"nvmlDeviceGetRetiredPagesPendingStatus"});
  find(from, library.temperature, {"nvmlDeviceGetTemperature"});
  find(from, library.memory, {"nvmlDeviceGetMemoryInfo"});
  find(from, library.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(from, library.processes,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
}

void find_links(const SharedLibrary& from, Library& library) {
  find(from, library.fabric, {"nvmlDeviceGetGpuFabricInfo"});
  find(from, library.fabric_v, {"nvmlDeviceGetGpuFabricInfoV"});
  find(from, library.link_state, {"nvmlDeviceGetNvLinkState"});
  find(from, library.link_remote_pci, {"nvmlDeviceGetNvLinkRemotePciInfo_v2"});
  find(from, library.p2p_status, {"nvmlDeviceGetP2PStatus"});
  find(from, library.common_ancestor, {"nvmlDeviceGetTopologyCommonAncestor"});
}

constexpr std::array kWords = std::to_array<std::pair<Return, std::string_view>>({
    {0, "success"},
    {1, "NVML was not initialised"},
    {2, "invalid argument"},
    {3, "not supported"},
    {4, "insufficient permissions"},
    {6, "not found"},
    {7, "insufficient size"},
    {8, "insufficient external power"},
    {9, "driver not loaded"},
    {10, "time-out"},
    {11, "interrupt request issue"},
    {12, "NVML shared library not found"},
    {13, "function not found"},
    {14, "corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires reset"},
    {17, "GPU access blocked by the operating system"},
    {18, "driver/library version mismatch"},
    {19, "in use by another client"},
    {20, "insufficient memory"},
    {21, "no data"},
    {23, "insufficient resources"},
    {999, "unknown error"},
});

}  // namespace

Library open_library() {
  Library library;
  const auto from = SharedLibrary::open("libnvidia-ml.so.1");
  if (!from) {
    library.error = from.error().reason;
    return library;
  }
  library.path = from->path();
  find_system(*from, library);
  find_device(*from, library);
  find_links(*from, library);
  return library;
}

std::string words_of(Return code) {
  for (const auto& [number, words] : kWords) {
    if (number == code) return std::string(words);
  }
  return "error " + std::to_string(code);
}

}  // namespace distdoctor::vendor::nvml
