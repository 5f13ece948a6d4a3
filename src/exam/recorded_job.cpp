#include "exam/recorded_job.h"

#include "rules/launch/places.h"

#include <string>
#include <utility>
#include <vector>

namespace distdoctor::exam {
namespace {

bool says_backend(const rules::Said& said) {
  return said.options.contains("DISTDOCTOR_BACKEND");
}

bool only_a_fallback(const rules::Said& said, const std::string& name) {
  return said.command.fallbacks.contains(name) && !said.command.settings.contains(name) &&
         !said.options.contains(name);
}

// `today` was worked out of the command line and the options alone.
void lay_over(const rules::Said& said, const JobSpec& today, JobSpec& job) {
  for (const auto& [name, setting] : today.settings) {
    if (only_a_fallback(said, name)) {
      job.settings.emplace(name, setting);
    } else {
      job.settings[name] = setting;
    }
    job.unresolved.erase(name);
  }
  for (const auto& [name, setting] : today.unresolved) {
    job.settings.erase(name);
    job.unresolved[name] = setting;
  }
  if (!today.launches.empty()) {
    job.launches = today.launches;
    job.rank_settings = today.rank_settings;
  }
  if (today.ranks_per_node) job.ranks_per_node = today.ranks_per_node;
  if (says_backend(said)) {
    job.nccl = today.nccl;
    job.gloo = today.gloo;
  }
}

// A rank that lived there was followed by its own environment.
bool by_rank(const Software& software) {
  return !software.nccl.empty() && software.nccl.front().origin.starts_with("mapped by pid ");
}

}  // namespace

JobSpec job_of_recording(const ClusterFacts& cluster, const rules::Said& said) {
  JobSpec job = cluster.job;
  if (job.peers.empty()) {
    for (const NodeFacts& node : cluster.nodes) job.peers.push_back(node.host);
  }
  rules::Said explicitly = said;
  explicitly.environment.clear();
  if (job == JobSpec{.peers = job.peers}) {
    return rules::resolve_job(explicitly, job.peers, cluster.nodes);
  }
  lay_over(explicitly, rules::resolve_job(explicitly, job.peers, {}), job);
  return job;
}

void forget_other_libraries(const rules::Said& said, const JobSpec& then, ClusterFacts& cluster) {
  const auto before = rules::places_said({}, then);
  for (const auto& [name, value] : rules::places_said(said, cluster.job)) {
    if (name != "LD_LIBRARY_PATH" && name != "LD_PRELOAD") continue;
    const auto found = before.find(name);
    if (found != before.end() && found->second == value) continue;
    const Unknown why{Why::not_collected, "it was looked at without the job's " + name};
    for (NodeFacts& node : cluster.nodes) {
      if (node.software.known() && !by_rank(*node.software)) node.software = why;
    }
  }
}

}  // namespace distdoctor::exam
