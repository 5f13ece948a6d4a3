// libnvidia-ml.so.1 as a table of the functions that we call; null: this library has it not.
#pragma once

#include "workers/vendor/nvml_abi.h"

#include <string>

namespace distdoctor::vendor::nvml {

struct Library {
  std::string path = {};
  std::string error = {};  // why it could not be opened

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*driver_version)(char*, Count) = nullptr;
  Return (*cuda_version)(int*) = nullptr;
  Return (*device_count)(Count*) = nullptr;
  Return (*device_by_index)(Count, Device*) = nullptr;

  Return (*name)(Device, char*, Count) = nullptr;
  Return (*uuid)(Device, char*, Count) = nullptr;
  Return (*pci)(Device, PciInfo*) = nullptr;
  Return (*capability)(Device, int*, int*) = nullptr;
  Return (*compute_mode)(Device, int*) = nullptr;
  Return (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  Return (*clocks_reasons)(Device, std::uint64_t*) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  Return (*performance_state)(Device, int*) = nullptr;
  Return (*total_ecc)(Device, int, int, std::uint64_t*) = nullptr;
  Return (*remapped_rows)(Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  Return (*retired_pending)(Device, Enabled*) = nullptr;
  Return (*fabric)(Device, FabricInfo*) = nullptr;
  Return (*fabric_v)(Device, FabricInfoV2*) = nullptr;
  Return (*link_state)(Device, unsigned, Enabled*) = nullptr;
  Return (*link_remote_pci)(Device, unsigned, PciInfo*) = nullptr;
  Return (*temperature)(Device, int, unsigned*) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*memory_v2)(Device, MemoryV2*) = nullptr;
  Return (*processes)(Device, Count*, void*) = nullptr;
  Return (*p2p_status)(Device, Device, int, int*) = nullptr;
  Return (*common_ancestor)(Device, Device, int*) = nullptr;
};

// By the name that CUDA programs and NCCL use. It stays loaded until the process ends.
Library open_library();

// What an nvmlReturn_t means, in the words of nvml.h; a number that it has not is "error N".
std::string words_of(Return code);

}  // namespace distdoctor::vendor::nvml
