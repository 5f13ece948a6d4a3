#include <distdoctor/facts.h>

#include "rules/launch/live_job.h"
#include "rules/predict.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace distdoctor::rules {

namespace {

bool from_config_file(const Setting& setting) {
  return setting.origin.source == Source::user_config ||
         setting.origin.source == Source::system_config;
}

// Ties go to what is laid over: a node's own environment goes before the coordinator's.
void lay_over(Settings& settings, const std::string& name, const Setting& setting) {
  const auto found = settings.find(name);
  if (found != settings.end() && found->second.origin.source < setting.origin.source) return;
  settings[name] = setting;
}

bool same_or_unsaid(const JobSpec& job, const TrainingProcess& process, const std::string& name) {
  const auto said = job.settings.find(name);
  const auto seen = process.env->find(name);
  return said == job.settings.end() || seen == process.env->end() ||
         said->second.value == seen->second;
}

// What an earlier job left behind, or a job that lives on this node alone.
bool of_another_job(const JobSpec& job, const NodeFacts& node, const TrainingProcess& process) {
  const bool rest = process.orphan && !job.settings.contains("MASTER_ADDR");
  return rest || process.state == "Z" || (job.peers.size() > 1 && job_of_one_node(node, process));
}

// A rank of this job, as far as one can tell: it meets the others at the same place.
bool of_this_job(const JobSpec& job, const NodeFacts& node, const TrainingProcess& process) {
  return process.role == ProcessRole::worker && process.our_network && process.env.known() &&
         same_or_unsaid(job, process, "MASTER_ADDR") &&
         same_or_unsaid(job, process, "MASTER_PORT") && !of_another_job(job, node, process);
}

// What all ranks of a node agree on; what they differ in is a matter of ranks.
Settings of_processes(const JobSpec& job, const NodeFacts& node) {
  Settings settings;
  std::set<std::string> differing;
  if (!node.processes.known()) return settings;
  for (const TrainingProcess& process : *node.processes) {
    if (!of_this_job(job, node, process)) continue;
    const Origin origin{.source = Source::process,
                        .node = node.host,
                        .where = "pid " + std::to_string(process.pid)};
    for (const auto& [name, value] : *process.env) {
      const auto [found, added] = settings.try_emplace(name, Setting{value, origin});
      if (!added && found->second.value != value) differing.insert(name);
    }
  }
  for (const std::string& name : differing) settings.erase(name);
  return settings;
}

}  // namespace

Settings settings_in_force(const JobSpec& job, const NodeFacts& node) {
  Settings settings = job.settings;
  if (node.settings.known()) {
    for (const auto& [name, setting] : *node.settings) {
      if (from_config_file(setting) && !name.starts_with("NCCL_")) continue;
      lay_over(settings, name, setting);
    }
  }
  for (const auto& [name, setting] : of_processes(job, node)) lay_over(settings, name, setting);
  return settings;
}

}  // namespace distdoctor::rules
