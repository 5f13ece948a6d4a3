#include "rules/launch/places.h"

#include <distdoctor/setting_text.h>

#include "rules/predict.h"

#include <algorithm>
#include <string>

namespace distdoctor::rules {
namespace {

// A rank from whose environment the job's settings come.
const TrainingProcess* rank_of_job(const ClusterFacts& cluster) {
  for (const auto& [name, setting] : cluster.job.settings) {
    if (setting.origin.source != Source::process) continue;
    const auto node = std::ranges::find(cluster.nodes, setting.origin.node, &NodeFacts::host);
    if (node == cluster.nodes.end() || !node->processes.known()) continue;
    for (const TrainingProcess& process : *node->processes) {
      if (setting.origin.where == "pid " + std::to_string(process.pid)) return &process;
    }
  }
  return nullptr;
}

bool has_rank(const NodeFacts& node) {
  return node.processes.known() &&
         std::ranges::any_of(*node.processes, [](const TrainingProcess& process) {
           return process.role == ProcessRole::worker && process.our_network;
         });
}

bool goes_by(const NodeFacts& node, const std::string& name, const std::string& value) {
  if (!node.settings.known()) return false;
  const auto own = node.settings->find(name);
  return own != node.settings->end() && own->second.value == value;
}

// `mpirun -x NAME` hands on what our environment has.
const std::string& value_of(const Said& said, const std::string& name, const Setting& setting) {
  const auto own = said.environment.find(name);
  const bool handed_on = setting.value.empty() && own != said.environment.end();
  return handed_on ? own->second.value : setting.value;
}

bool says_otherwise(const Said& said, const std::string& name) {
  return said.command.settings.contains(name) || said.options.contains(name);
}

}  // namespace

JobPlaces places_said(const Said& said, const JobSpec& job) {
  JobPlaces places;
  for (const auto& [name, setting] : job.settings) {
    const std::string& value = value_of(said, name, setting);
    const bool own = leads_to_files(name) && is_the_jobs_own(setting.origin.source);
    if (own && !value.empty()) places[name] = value;
  }
  for (const auto& [name, setting] : said.command.fallbacks) {
    if (leads_to_files(name) && !says_otherwise(said, name)) {
      places[name] = "${" + name + ":-" + setting.value + "}";
    }
  }
  for (const auto& [name, setting] : job.unresolved) {
    if (leads_to_files(name)) places[name] = setting.value;
  }
  return places;
}

JobPlaces places_in_force(const ClusterFacts& cluster,
                          const NodeFacts& node,
                          const JobPlaces& sent) {
  JobPlaces places = sent;
  if (has_rank(node)) return places;  // it tells better itself
  for (const auto& [name, setting] : settings_in_force(cluster.job, node)) {
    const bool of_file = setting.origin.source >= Source::user_config;
    if (!leads_to_files(name) || of_file || goes_by(node, name, setting.value)) continue;
    places.try_emplace(name, setting.value);
  }
  const TrainingProcess* rank = rank_of_job(cluster);
  if (rank == nullptr || !rank->env.known()) return places;
  for (const auto& [name, value] : *rank->env) {
    if (leads_to_files(name) && !goes_by(node, name, value)) places.try_emplace(name, value);
  }
  return places;
}

}  // namespace distdoctor::rules
