// Variables that list which GPUs a process sees. Look-ups that checks share; no judgement.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/workers.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace distdoctor::checks::gpu {

inline constexpr std::array kLists = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                      "ROCR_VISIBLE_DEVICES"};

// As the CUDA driver reads it: up to the first entry that is none ("-1", "NoDevFiles").
inline std::size_t length_of(std::string_view list) {
  std::size_t length = 0;
  while (!list.empty()) {
    const auto entry = list.substr(0, list.find(','));
    const bool device = !entry.empty() && !entry.starts_with('-') && entry != "NoDevFiles";
    if (!device) break;
    ++length;
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
  }
  return length;
}

// The list that torchrun hands on to all its ranks.
struct Listed {
  std::string_view name;
  const Setting* setting = nullptr;
  bool of_the_job = false;  // its command or script says so; else the environment here does
};

inline std::optional<Listed> listed_for(const JobSpec& job, const NodeFacts& node) {
  for (const std::string_view name : kLists) {
    const auto said = job.rank_settings.find(std::string(name));
    if (said != job.rank_settings.end()) return Listed{name, &said->second, true};
  }
  // What Slurm set for our own step need not be what it sets for the job's.
  if (!node.settings.known() || node.settings->contains("SLURM_JOB_ID")) return std::nullopt;
  for (const std::string_view name : kLists) {
    const auto there = node.settings->find(std::string(name));
    if (there != node.settings->end()) return Listed{name, &there->second};
  }
  return std::nullopt;
}

// As length_of, and no further than to a number that the node does not have.
inline std::size_t shown_by(std::string_view list, std::size_t gpus) {
  std::size_t shown = 0;
  for (const std::size_t most = length_of(list); shown < most; ++shown) {
    const auto entry = list.substr(0, list.find(','));
    const auto index = number(entry);
    if (index && std::cmp_greater_equal(*index, gpus)) break;
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
  }
  return shown;
}

// A value that only the job's shell knows ("$SLURM_LOCALID") says nothing here.
inline bool is_plain(std::string_view list) {
  return list.find_first_of("$`") == std::string_view::npos;
}

}  // namespace distdoctor::checks::gpu
