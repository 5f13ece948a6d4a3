// What the driver's management library said of a node's GPUs, and how findings name them.
// Look-ups that the checks of this folder share; no judgement.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include "devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::checks::gpu {

inline constexpr const char* kNoDriver = "no node has the NVIDIA driver loaded";

// Calls `look(node, nvml)` for each node whose driver told of its GPUs. Where a driver is loaded
// and nothing was told, that is a gap; where none is loaded anywhere, nothing was looked at.
// Whether any node told of its GPUs.
template <class Look>
bool each_told(const Case& c, Judge& judge, Look look) {
  bool drivers = false;
  bool told = false;
  for (const NodeFacts& node : c.cluster.nodes) {
    const GpuFacts* gpus = judge.see(node, "gpu", node.gpu);
    if (gpus == nullptr || gpus->nvidia_driver.empty()) continue;
    drivers = true;
    const Nvml* nvml = judge.see(node, "nvml", node.nvml);
    if (nvml == nullptr) continue;
    if (nvml->error.empty()) {
      told = true;
      look(node, *nvml);
    } else {
      judge.miss(
          {.node = node.host, .fact = "nvml", .why = {.kind = Why::failed, .text = nvml->error}});
    }
  }
  if (!drivers) judge.skip(kNoDriver);
  return told;
}

template <class Wanted>
std::vector<const NvmlGpu*> gpus_that(const Nvml& nvml, Wanted wanted) {
  std::vector<const NvmlGpu*> found;
  for (const NvmlGpu& gpu : nvml.gpus) {
    if (wanted(gpu)) found.push_back(&gpu);
  }
  return found;
}

// Its PCI address, or NVML's index where that could not be asked; both are good for `nvidia-smi
// -i`.
inline std::string handle_of(const NvmlGpu& gpu) {
  return gpu.pci.empty() ? fmt::to_string(gpu.index) : gpu.pci;
}

// "nvidia-smi -q -i 0000:1b:00.0 -d ECC"
inline std::string query(const NvmlGpu& gpu, std::string_view display) {
  return fmt::format("nvidia-smi -q -i {} -d {}", shell_quote(handle_of(gpu)), display);
}

// One GPU's row in a finding.
struct GpuRow {
  const NvmlGpu* gpu;
  std::string_view what;  // "ECC": of the GPU
  std::string observed;
  std::string expected;
  std::string command;
};

inline void add_row(const NodeFacts& node, GpuRow row, Finding& finding) {
  const std::string handle = handle_of(*row.gpu);
  finding.subjects.devices.push_back(device_name(node, handle));
  finding.evidence.push_back({.node = node.host,
                              .fact = fmt::format("GPU {} {}", handle, row.what),
                              .observed = std::move(row.observed),
                              .expected = std::move(row.expected),
                              .command = std::move(row.command)});
}

// It was asked just now, answered itself (its temperature is read from the GPU), and has no error
// of memory since its driver was loaded or it was reset: what an old line of a log says of it is
// over.
inline bool is_sound(const NvmlGpu& gpu) {
  return gpu.error.empty() && gpu.temperature_c && gpu.ecc_uncorrected.value_or(0) == 0 &&
         gpu.remap_pending != true && gpu.remap_failed != true && gpu.retire_pending != true;
}

// All its NVLinks are up, and the NVSwitch fabric, if there is one, has let it in.
inline bool is_well_linked(const NvmlGpu& gpu) {
  const bool in_fabric = gpu.fabric_state.empty() || gpu.fabric_state == "not supported" ||
                         (gpu.fabric_state == "completed" &&
                          (gpu.fabric_status.empty() || gpu.fabric_status == "success"));
  return is_sound(gpu) && gpu.nvlinks > 0 && gpu.nvlinks_active == gpu.nvlinks && in_fabric;
}

// What the driver says of the GPU at that address; null: it was not asked, or told nothing.
inline const NvmlGpu* find_answer(const NodeFacts& node, std::string_view pci) {
  if (!node.nvml.known()) return nullptr;
  const auto found = std::ranges::find(node.nvml->gpus, pci, &NvmlGpu::pci);
  return found == node.nvml->gpus.end() ? nullptr : &*found;
}

// Whether so many GPUs are too few for the ranks of a node; also where nobody said how many there
// are, and none is left.
inline bool too_few_for_ranks(const JobSpec& job, std::size_t usable) {
  return std::cmp_greater(job.ranks_per_node.value_or(1), usable);
}

}  // namespace distdoctor::checks::gpu
