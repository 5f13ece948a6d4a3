// What the driver's management library tells of NVIDIA GPUs (nvml.h of the CUDA Toolkit). It is
// asked by a helper of its own with a deadline: a wedged driver answers never.
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor {

struct NvmlProcess {
  int pid = 0;  // as the driver counts them: of the host, not of a container
  std::int64_t memory_bytes = 0;
  bool operator==(const NvmlProcess&) const = default;
};

struct NvmlGpu {
  int index = 0;         // NVML's, which is the PCI order
  std::string pci = {};  // "0000:1b:00.0"
  std::string uuid = {};
  std::string name = {};
  std::string error = {};         // why most of it could not be read: "GPU is lost"
  std::string capability = {};    // compute capability, "9.0"
  std::string compute_mode = {};  // "default", "exclusive process", "prohibited"
  std::optional<bool> mig = {};   // none: this GPU has no such mode
  // Clocks are held down now: "hw slowdown", "hw thermal", "hw power brake", "sw thermal",
  // "sw power cap", "sync boost", ... ("idle" and "application clocks" are left out).
  std::vector<std::string> throttle = {};
  std::optional<int> busy_percent = {};                   // of the last second or less
  std::optional<int> performance_state = {};              // 0 is the fastest, 15 the slowest
  std::optional<std::int64_t> ecc_uncorrected = {};       // since the driver was loaded
  std::optional<std::int64_t> ecc_uncorrected_ever = {};  // over the life of the board
  std::optional<bool> remap_pending = {};                 // rows wait for a reset to be remapped
  std::optional<bool> remap_failed = {};
  std::optional<bool> retire_pending = {};  // pages, before Ampere
  // NVSwitch fabric: "not supported", "not started", "in progress", "completed"; empty: the
  // library is too old to say.
  std::string fabric_state = {};
  std::string fabric_status = {};  // of a completed one: "success", else what went wrong
  std::string fabric_cluster = {};
  int nvlinks = 0;  // that this GPU has
  int nvlinks_active = 0;
  std::optional<int> temperature_c = {};
  std::int64_t memory_bytes = 0;
  std::int64_t memory_used_bytes = 0;
  std::vector<NvmlProcess> processes = {};  // that compute on it
  bool operator==(const NvmlGpu&) const = default;
};

// Two GPUs by index, a < b.
struct NvmlPair {
  int a = 0;
  int b = 0;
  std::string p2p_read = {};  // "ok", "chipset not supported", "disabled by regkey", ...
  std::string p2p_write = {};
  std::string path = {};  // "NV18", "PIX", "PXB", "PHB", "NODE", "SYS" as nvidia-smi topo -m writes
  bool operator==(const NvmlPair&) const = default;
};

struct Nvml {
  std::string library = {};  // its path
  std::string driver = {};   // "550.54.15"
  std::string cuda = {};     // the newest that the driver can run: "12.4"
  std::string error = {};    // nvmlInit's own words; then the rest is empty
  int error_code = 0;        // nvmlReturn_t
  std::vector<NvmlGpu> gpus = {};
  std::vector<NvmlPair> pairs = {};
  bool operator==(const Nvml&) const = default;
};

template <class V, Is<NvmlProcess> T>
void fields(V& v, T& x) {
  v("pid", x.pid);
  v("memory_bytes", x.memory_bytes);
}
template <class V, Is<NvmlGpu> T>
void fields(V& v, T& x) {
  v("index", x.index);
  v("pci", x.pci);
  v("uuid", x.uuid);
  v("name", x.name);
  v("error", x.error);
  v("capability", x.capability);
  v("compute_mode", x.compute_mode);
  v("mig", x.mig);
  v("throttle", x.throttle);
  v("busy_percent", x.busy_percent);
  v("performance_state", x.performance_state);
  v("ecc_uncorrected", x.ecc_uncorrected);
  v("ecc_uncorrected_ever", x.ecc_uncorrected_ever);
  v("remap_pending", x.remap_pending);
  v("remap_failed", x.remap_failed);
  v("retire_pending", x.retire_pending);
  v("fabric_state", x.fabric_state);
  v("fabric_status", x.fabric_status);
  v("fabric_cluster", x.fabric_cluster);
  v("nvlinks", x.nvlinks);
  v("nvlinks_active", x.nvlinks_active);
  v("temperature_c", x.temperature_c);
  v("memory_bytes", x.memory_bytes);
  v("memory_used_bytes", x.memory_used_bytes);
  v("processes", x.processes);
}
template <class V, Is<NvmlPair> T>
void fields(V& v, T& x) {
  v("a", x.a);
  v("b", x.b);
  v("p2p_read", x.p2p_read);
  v("p2p_write", x.p2p_write);
  v("path", x.path);
}
template <class V, Is<Nvml> T>
void fields(V& v, T& x) {
  v("library", x.library);
  v("driver", x.driver);
  v("cuda", x.cuda);
  v("error", x.error);
  v("error_code", x.error_code);
  v("gpus", x.gpus);
  v("pairs", x.pairs);
}

}  // namespace distdoctor
