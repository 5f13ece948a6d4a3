// GPUs as their kernel drivers show them without any vendor library: /proc/driver/nvidia, /dev,
// /sys/class/kfd.
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

enum class GpuVendor : std::uint8_t { nvidia, amd };
template <>
struct EnumNames<GpuVendor> {
  static constexpr std::string_view values[] = {"nvidia", "amd"};
};

struct Gpu {
  std::string pci = {};  // "0000:1b:00.0"
  GpuVendor vendor = GpuVendor::nvidia;
  std::string model = {};         // "NVIDIA H100 80GB HBM3"; empty where the driver does not say
  std::string uuid = {};          // "GPU-..."
  std::optional<int> minor = {};  // of /dev/nvidiaN or renderDN
  std::string device_node = {};   // "/dev/nvidia0"
  bool node_there = false;        // that node exists where we are
  bool node_usable = false;       // and we may open it
  std::string xgmi_hive = {};     // of AMD: GPUs of one hive reach each other over xGMI
  bool operator==(const Gpu&) const = default;
};

struct GpuFacts {
  std::vector<Gpu> gpus = {};       // that a driver drives, by PCI address
  std::string nvidia_driver = {};   // version of the loaded kernel module; empty: not loaded
  bool nvidia_open = false;         // it is the open kernel module
  std::string nvidia_library = {};  // libcuda.so.1's version by its file name; empty: none found
  bool peermem = false;             // nvidia_peermem or nv_peer_mem is loaded (GPUDirect RDMA)
  bool control_node = false;        // /dev/nvidiactl exists
  bool uvm_node = false;            // /dev/nvidia-uvm exists
  std::string amd_driver = {};      // version of amdgpu, "in kernel 6.8.0"; empty: not loaded
  bool operator==(const GpuFacts&) const = default;
};

template <class V, Is<Gpu> T>
void fields(V& v, T& x) {
  v("pci", x.pci);
  v("vendor", x.vendor);
  v("model", x.model);
  v("uuid", x.uuid);
  v("minor", x.minor);
  v("device_node", x.device_node);
  v("node_there", x.node_there);
  v("node_usable", x.node_usable);
  v("xgmi_hive", x.xgmi_hive);
}
template <class V, Is<GpuFacts> T>
void fields(V& v, T& x) {
  v("gpus", x.gpus);
  v("nvidia_driver", x.nvidia_driver);
  v("nvidia_open", x.nvidia_open);
  v("nvidia_library", x.nvidia_library);
  v("peermem", x.peermem);
  v("control_node", x.control_node);
  v("uvm_node", x.uvm_node);
  v("amd_driver", x.amd_driver);
}

}  // namespace distdoctor
