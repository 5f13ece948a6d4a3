// What we call of NVIDIA's management library (libnvidia-ml.so.1): types and numbers as nvml.h of
// the CUDA Toolkit 12.4 has them, where nothing else is said. Every function may be missing: an old
// library has not all, and a new one may drop what it has deprecated.
#pragma once

#include <cstdint>

namespace distdoctor::vendor::nvml {

using Return = int;    // nvmlReturn_t
using Device = void*;  // nvmlDevice_t
using Enabled = int;   // nvmlEnableState_t: 0, 1
using Count = unsigned;

inline constexpr Return kSuccess = 0;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kLibraryNotFound = 12;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuLost = 15;
inline constexpr Return kResetRequired = 16;

inline constexpr int kDeviceText = 96;  // name and UUID: NVML_DEVICE_*_V2_BUFFER_SIZE
inline constexpr int kVersionText = 80;
inline constexpr unsigned kMostLinks = 36;  // NVML_NVLINK_MAX_LINKS: 18, and 36 since CUDA 13

// NVML_STRUCT_VERSION of the struct that is asked for.
template <class Struct>
constexpr unsigned struct_version(unsigned number) {
  return static_cast<unsigned>(sizeof(Struct)) | number << 24U;
}

struct PciInfo {  // nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3 (CUDA 10.1)
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {  // nvmlMemory_t: bytes
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};
struct MemoryV2 {  // nvmlMemory_v2_t (CUDA 11.5): here what the driver keeps is not `used`
  unsigned version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(MemoryV2) == 40);

struct Utilization {  // nvmlUtilization_t: percent of the last sample, of 1/6 to 1 s
  unsigned gpu;       // of the time in which a kernel ran
  unsigned memory;
};
static_assert(sizeof(Utilization) == 8);

inline constexpr int kSlowestState = 15;  // NVML_PSTATE_15; 32 is unknown

struct FabricInfo {  // nvmlGpuFabricInfo_t (CUDA 12.0)
  unsigned char cluster[16];
  Return status;
  unsigned clique;
  unsigned char state;
};
static_assert(sizeof(FabricInfo) == 28);
struct FabricInfoV2 {  // nvmlGpuFabricInfo_v2_t (CUDA 12.3)
  unsigned version;
  unsigned char cluster[16];
  Return status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};
static_assert(sizeof(FabricInfoV2) == 36);

// nvmlProcessInfo_t of the calls _v2 (CUDA 11.0) and _v3 (11.5). Drivers of the branch 535 exist
// that write 8 bytes more an entry (protected memory) under the same name: see processes().
struct ProcessInfo {
  unsigned pid;
  std::uint64_t memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

}  // namespace distdoctor::vendor::nvml
