// How many GPUs a node has, and how sure that is. Look-ups that the checks of this folder share; no
// judgement.
#pragma once

#include <distdoctor/gpus.h>

#include "devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace distdoctor::checks::gpu {

// A job that computes on CPUs may have as many ranks as it likes: only what somebody said, or set,
// tells that it uses GPUs.
inline bool surely_uses_gpus(const JobSpec& job) {
  const bool said = job.nccl == Use::yes && job.gloo != Use::maybe;
  const auto sets_nccl = [](const auto& entry) {
    return entry.first.starts_with("NCCL_") && is_the_jobs_own(entry.second.origin.source);
  };
  return said || (job.nccl == Use::yes && std::ranges::any_of(job.settings, sets_nccl));
}

// WSL's GPUs stand behind /dev/dxg, where nobody counts them.
inline bool is_wsl(const NodeFacts& node) {
  return node.world.known() && node.world->platform == "wsl";
}

// The driver drives none, no device file and no management library tells of one.
inline bool shows_none(const NodeFacts& node) {
  const bool told = node.nvml.known() && !node.nvml->gpus.empty();
  return node.gpu.known() && !has_gpus(node) && !told && !is_wsl(node);
}

// What the driver drives is the machine's own truth, whoever asks. A container may show less of it,
// and an ssh login's container need not be the job's.
inline Severity capped_by_container(Severity severity, const NodeFacts& node) {
  const bool bare = node.identity.known() && node.identity->container.empty();
  return bare ? severity : capped_by_context(severity, node.context);
}

// "8 x NVIDIA H100 80GB HBM3", "none".
inline std::string stock_text(const GpuFacts& facts) {
  std::map<std::string, int> models;
  for (const Gpu& gpu : facts.gpus) {
    const bool amd = gpu.vendor == GpuVendor::amd;
    ++models[!gpu.model.empty() ? gpu.model : amd ? "AMD GPU" : "NVIDIA GPU"];
  }
  std::string text;
  for (const auto& [model, count] : models) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, model);
  }
  return text.empty() ? "none" : text;
}

inline Evidence stock_row(const NodeFacts& node, std::string expected) {
  return {.node = node.host,
          .fact = "GPUs",
          .observed = stock_text(*node.gpu),
          .expected = std::move(expected),
          .context = std::string(slug(node.context)),
          .command = "nvidia-smi -L || rocm-smi"};
}

}  // namespace distdoctor::checks::gpu
