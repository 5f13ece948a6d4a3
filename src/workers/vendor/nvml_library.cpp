#include "workers/vendor/nvml_library.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace distdoctor::vendor::nvml {
namespace {

constexpr const char* kName = "libnvidia-ml.so.1";

// The first of the names that the library has; the newest stands first.
template <class Function>
void find(void* handle, Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* const symbol = ::dlsym(handle, name); symbol != nullptr) {
      function = reinterpret_cast<Function>(symbol);  // NOLINT(*-reinterpret-cast): as dlsym has it
      return;
    }
  }
}

std::string path_of(void* handle) {
  link_map* map = nullptr;
  return ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map != nullptr
             ? map->l_name
             : kName;
}

void find_system(void* handle, Library& library) {
  find(handle, library.init, {"nvmlInit_v2"});
  find(handle, library.shutdown, {"nvmlShutdown"});
  find(handle, library.driver_version, {"nvmlSystemGetDriverVersion"});
  find(handle, library.cuda_version,
       {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  find(handle, library.device_count, {"nvmlDeviceGetCount_v2"});
  find(handle, library.device_by_index, {"nvmlDeviceGetHandleByIndex_v2"});
}

void find_device(void* handle, Library& library) {
  find(handle, library.name, {"nvmlDeviceGetName"});
  find(handle, library.uuid, {"nvmlDeviceGetUUID"});
  find(handle, library.pci, {"nvmlDeviceGetPciInfo_v3"});
  find(handle, library.capability, {"nvmlDeviceGetCudaComputeCapability"});
  find(handle, library.compute_mode, {"nvmlDeviceGetComputeMode"});
  find(handle, library.mig_mode, {"nvmlDeviceGetMigMode"});
  find(handle, library.clocks_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(handle, library.total_ecc, {"nvmlDeviceGetTotalEccErrors"});
  find(handle, library.remapped_rows, {"nvmlDeviceGetRemappedRows"});
  find(handle, library.retired_pending, {"nvmlDeviceGetRetiredPagesPendingStatus"});
  find(handle, library.temperature, {"nvmlDeviceGetTemperature"});
  find(handle, library.memory, {"nvmlDeviceGetMemoryInfo"});
  find(handle, library.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(handle, library.processes,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
}

void find_links(void* handle, Library& library) {
  find(handle, library.fabric, {"nvmlDeviceGetGpuFabricInfo"});
  find(handle, library.fabric_v, {"nvmlDeviceGetGpuFabricInfoV"});
  find(handle, library.link_state, {"nvmlDeviceGetNvLinkState"});
  find(handle, library.link_remote_pci, {"nvmlDeviceGetNvLinkRemotePciInfo_v2"});
  find(handle, library.p2p_status, {"nvmlDeviceGetP2PStatus"});
  find(handle, library.common_ancestor, {"nvmlDeviceGetTopologyCommonAncestor"});
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
  void* const handle = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): the only thread
    library.error = why != nullptr ? why : kName;
    return library;
  }
  library.path = path_of(handle);
  find_system(handle, library);
  find_device(handle, library);
  find_links(handle, library);
  return library;
}

std::string words_of(Return code) {
  for (const auto& [number, words] : kWords) {
    if (number == code) return std::string(words);
  }
  return "error " + std::to_string(code);
}

}  // namespace distdoctor::vendor::nvml
