#include "exam/recorded_job.h"

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

}  // namespace distdoctor::exam
