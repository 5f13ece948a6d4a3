#include "rules/launch/live_job.h"

#include "base/text.h"
#include "rules/launch/command_line.h"
#include "rules/launch/settings.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace distdoctor::rules {
namespace {

struct Seen {
  const NodeFacts* node;
  const TrainingProcess* process;
  std::string master;  // MASTER_ADDR and MASTER_PORT, or empty
};

const std::string* variable(const TrainingProcess& process, const std::string& name) {
  if (!process.env.known()) return nullptr;
  const auto found = process.env->find(name);
  return found == process.env->end() ? nullptr : &found->second;
}

std::string master_of(const TrainingProcess& process) {
  const std::string* address = variable(process, "MASTER_ADDR");
  const std::string* port = variable(process, "MASTER_PORT");
  if (address == nullptr && port == nullptr) return {};
  return (address != nullptr ? *address : "") + " " + (port != nullptr ? *port : "");
}

bool another_job(const TrainingProcess& process, const Settings& known) {
  const auto said = known.find("MASTER_PORT");
  const std::string* port = variable(process, "MASTER_PORT");
  return said != known.end() && port != nullptr && *port != said->second.value;
}

std::vector<Seen> alive(const std::vector<NodeFacts>& nodes, const Settings& known) {
  std::vector<Seen> all;
  for (const NodeFacts& node : nodes) {
    if (!node.processes.known()) continue;
    for (const TrainingProcess& process : *node.processes) {
      if (process.orphan || process.state == "Z" || another_job(process, known)) continue;
      all.push_back({&node, &process, master_of(process)});
    }
  }
  return all;
}

// The master with the most workers; the first of equals.
std::string busiest_master(const std::vector<Seen>& all) {
  std::map<std::string, int> workers;
  for (const Seen& seen : all) {
    if (seen.process->role == ProcessRole::worker && !seen.master.empty()) ++workers[seen.master];
  }
  const auto most =
      std::ranges::max_element(workers, {}, [](const auto& entry) { return entry.second; });
  return most == workers.end() ? std::string() : most->first;
}

Origin origin_of(const Seen& seen) {
  return {.source = Source::process,
          .node = seen.node->host,
          .where = "pid " + std::to_string(seen.process->pid)};
}

void take_settings(const Seen& seen, LiveJob& job) {
  if (!seen.process->env.known()) return;
  for (const auto& [name, value] : *seen.process->env) {
    if (shared_by_all(name)) job.settings.emplace(name, Setting{value, origin_of(seen)});
  }
}

void take_launches(const Seen& seen, LiveJob& job) {
  const auto reading = read_command(seen.process->argv, {});
  if (!reading) return;
  for (Launch launch : reading->launches) {
    if (launch.kind == LauncherKind::python || launch.kind == LauncherKind::script) continue;
    launch.origin = origin_of(seen);
    launch.under_srun = variable(*seen.process, "SLURM_STEP_ID") != nullptr;
    job.launches.push_back(std::move(launch));
  }
}

std::optional<int> count_workers(const std::vector<Seen>& workers) {
  std::map<std::string, int> by_node;
  for (const Seen& seen : workers) {
    const std::string* said = variable(*seen.process, "LOCAL_WORLD_SIZE");
    if (said != nullptr) {
      if (const auto count = parse_int_within(*said, 1, 4096)) return count;
    }
    if (variable(*seen.process, "RANK") != nullptr) ++by_node[seen.node->host];
  }
  const auto most =
      std::ranges::max_element(by_node, {}, [](const auto& entry) { return entry.second; });
  return most == by_node.end() ? std::nullopt : std::optional(most->second);
}

}  // namespace

LiveJob live_job(const std::vector<NodeFacts>& nodes, const Settings& known) {
  const std::vector<Seen> all = alive(nodes, known);
  const std::string master = busiest_master(all);
  LiveJob job;
  std::vector<Seen> workers;
  for (const Seen& seen : all) {
    if (seen.process->role != ProcessRole::worker) {
      take_launches(seen, job);
    } else if (seen.master == master) {
      workers.push_back(seen);
      take_settings(seen, job);
      job.maps_nccl = job.maps_nccl || !seen.process->nccl_library.empty();
    }
  }
  // An agent that has no worker yet still tells what they will get.
  for (const Seen& seen : all) {
    if (workers.empty() && seen.process->role == ProcessRole::agent) take_settings(seen, job);
  }
  job.ranks_per_node = count_workers(workers);
  return job;
}

}  // namespace distdoctor::rules
