// What NVML would say on the captured machines of gpu_machines.h: typed by hand after public
// outputs of nvidia-smi, no GPU ever said it to us.
#pragma once

#include <distdoctor/facts/nvml.h>

#include "codec/read.h"
#include "codec/write.h"
#include "machine/captured.h"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace distdoctor::testing {

struct NvmlShape {
  std::string name = "NVIDIA H100 80GB HBM3";
  std::string capability = "9.0";
  std::string driver = "550.54.15";
  std::string cuda = "12.4";
  std::vector<std::string> addresses = {};
  bool data_center = true;  // ECC, MIG, row remapping
  bool fabric = false;      // registers with an NVSwitch fabric
  int nvlinks = 0;
  int nvlinks_active = 0;
  std::string far_p2p = "ok";  // of GPUs below other CPUs; `halves` is where these begin
  std::string near_path = "PIX";
  std::string far_path = "SYS";
  std::size_t halves = 0;  // 0: all are near
};

inline NvmlGpu fake_nvml_gpu(const NvmlShape& shape, int i, const std::string& address) {
  NvmlGpu gpu{.index = i,
              .pci = address,
              .uuid = "GPU-5eed0000-0000-4000-8000-00000000000" + std::to_string(i),
              .name = shape.name,
              .capability = shape.capability,
              .compute_mode = "default",
              .busy_percent = 0,
              .performance_state = 0,
              .fabric_state = shape.fabric ? "completed" : "not supported",
              .fabric_status = shape.fabric ? "success" : "",
              .nvlinks = shape.nvlinks,
              .nvlinks_active = shape.nvlinks_active,
              .temperature_c = 31 + i,
              .memory_bytes = std::int64_t{80} << 30,
              .memory_used_bytes = std::int64_t{4} << 20};
  if (shape.data_center) {
    gpu.mig = false;
    gpu.ecc_uncorrected = 0;
    gpu.ecc_uncorrected_ever = 0;
    gpu.remap_pending = false;
    gpu.remap_failed = false;
  }
  return gpu;
}

inline Nvml fake_nvml(const NvmlShape& shape) {
  Nvml nvml{.library = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
            .driver = shape.driver,
            .cuda = shape.cuda};
  const std::size_t count = shape.addresses.size();
  for (std::size_t i = 0; i < count; ++i) {
    nvml.gpus.push_back(fake_nvml_gpu(shape, static_cast<int>(i), shape.addresses[i]));
    for (std::size_t j = i + 1; j < count; ++j) {
      const bool far = shape.halves > 0 && i / shape.halves != j / shape.halves;
      const std::string p2p = far ? shape.far_p2p : "ok";
      nvml.pairs.push_back({.a = static_cast<int>(i),
                            .b = static_cast<int>(j),
                            .p2p_read = p2p,
                            .p2p_write = p2p,
                            .path = far ? shape.far_path : shape.near_path});
    }
  }
  return nvml;
}

inline constexpr const char* kAskNvml = "vendor nvml";

inline void answer_nvml(machine::CapturedMachine& captured, const Nvml& nvml) {
  captured.children[kAskNvml] = {.out = codec::write_json(nvml) + "\n"};
}

// Changes what the machine's NVML says.
template <class Change>
void change_nvml(machine::CapturedMachine& captured, Change change) {
  Nvml nvml;
  const auto read = codec::read_json(captured.children.at(kAskNvml).out, nvml, "read our own text");
  if (!read) throw std::logic_error(read.error().render());
  change(nvml);
  answer_nvml(captured, nvml);
}

// In the middle of a job: power capped, warm, full memory, a process on each GPU.
inline void be_busy(Nvml& nvml) {
  for (NvmlGpu& gpu : nvml.gpus) {
    gpu.throttle = {"sw power cap"};
    gpu.busy_percent = 97;
    gpu.performance_state = 0;
    gpu.temperature_c = 66;
    gpu.memory_used_bytes = gpu.memory_bytes / 10 * 9;
    gpu.processes = {{.pid = 31'000 + gpu.index, .memory_bytes = gpu.memory_used_bytes}};
  }
}

}  // namespace distdoctor::testing
