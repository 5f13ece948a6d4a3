#include "rules/launch/live_job.h"

#include <distdoctor/meeting.h>

#include "base/text.h"
#include "rules/launch/command_line.h"
#include "rules/launch/settings.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace distdoctor::rules {
namespace {

struct Seen {
  const NodeFacts* node;
  const TrainingProcess* process;
  std::string master;  // MASTER_ADDR and MASTER_PORT, or empty
};
using Processes = std::vector<Seen>;

std::string text_of(const TrainingProcess& process, const std::string& name) {
  return variable(process, name).value_or("");
}

std::string master_of(const TrainingProcess& process) {
  const auto address = variable(process, "MASTER_ADDR");
  const auto port = variable(process, "MASTER_PORT");
  if (!address && !port) return {};
  return address.value_or("") + " " + port.value_or("");
}

bool another_job(const TrainingProcess& process, const Settings& known) {
  const auto said = known.find("MASTER_PORT");
  const auto port = variable(process, "MASTER_PORT");
  return said != known.end() && port && *port != said->second.value;
}

// An orphan that is alone is a rest; a shell that has ended leaves its whole job as orphans.
bool left_over(const Processes& all, const Seen& seen) {
  return seen.process->orphan && std::ranges::none_of(all, [&](const Seen& other) {
           return other.process->uid == seen.process->uid && other.master == seen.master &&
                  text_of(*other.process, "RANK") != text_of(*seen.process, "RANK");
         });
}

Processes alive(const std::vector<NodeFacts>& nodes, const Settings& known) {
  Processes all;
  for (const NodeFacts& node : nodes) {
    if (!node.processes.known()) continue;
    for (const TrainingProcess& process : *node.processes) {
      if (!process.our_network || process.state == "Z" || another_job(process, known)) continue;
      all.push_back({&node, &process, master_of(process)});
    }
  }
  Processes living;
  std::ranges::copy_if(all, std::back_inserter(living),
                       [&](const Seen& seen) { return !left_over(all, seen); });
  return living;
}

// --- jobs of one node, which are nobody else's ---

// torchrun says so; else all ranks are there.
bool whole_job(const Processes& on_a_node) {
  std::set<int> ranks;
  std::optional<int> size;
  for (const Seen& seen : on_a_node) {
    const TrainingProcess& process = *seen.process;
    if (alone_on_its_node(process)) return true;
    const auto world = parse_int<int>(text_of(process, "WORLD_SIZE"));
    if (!world || (size && size != world)) return false;
    size = world;
    if (const auto rank = parse_int<int>(text_of(process, "RANK"))) ranks.insert(*rank);
  }
  return size && *size > 0 && std::ssize(ranks) == *size && *ranks.begin() == 0 &&
         *ranks.rbegin() == *size - 1;
}

// --- one of the others ---

// The master with the most workers; the first of equals.
std::string busiest_master(const Processes& all) {
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

// As the shell would have it: torchrun takes a flag that is not there from its PET_ variable.
std::vector<std::string> command_of(const TrainingProcess& process) {
  std::vector<std::string> words = {"env"};
  if (process.env.known()) {
    for (const auto& [name, value] : *process.env) {
      if (name.starts_with("PET_")) words.push_back(std::string(name).append("=").append(value));
    }
  }
  std::ranges::copy(process.argv, std::back_inserter(words));
  return words;
}

struct LiveLaunch {
  Launch launch;
  Seen by;
};

std::vector<LiveLaunch> launches_of(const Processes& all, bool several_nodes) {
  std::vector<LiveLaunch> launches;
  for (const Seen& seen : all) {
    if (seen.process->role == ProcessRole::worker) continue;
    const auto reading = read_command(command_of(*seen.process), {});
    if (!reading) continue;
    for (Launch launch : reading->launches) {
      if (launch.kind == LauncherKind::python || launch.kind == LauncherKind::script) continue;
      if (several_nodes && for_one_node(launch)) continue;
      launch.origin = origin_of(seen);
      launch.under_srun = variable(*seen.process, "SLURM_STEP_ID").has_value();
      launches.push_back({std::move(launch), seen});
    }
  }
  return launches;
}

// What the calls of one job have in common.
std::string job_of(const LiveLaunch& live) {
  const Launch& launch = live.launch;
  std::string key = std::to_string(live.by.process->uid);
  for (const std::string* part :
       {&launch.script, &launch.rdzv_id, &launch.rdzv_backend, &launch.rdzv_endpoint,
        &launch.master_addr, &launch.master_port}) {
    key += "\n" + *part;
  }
  return key + "\n" + std::to_string(launch.nnodes_max.value_or(0));
}

// Jobs that have a call on each of their nodes, and these nodes.
std::map<std::string, std::set<std::string>> complete_jobs(const std::vector<LiveLaunch>& all) {
  std::map<std::string, std::set<std::string>> jobs;
  for (const LiveLaunch& live : all) {
    if (!starts_ranks_of_a_node(live.launch) || !live.launch.nnodes_max) continue;
    jobs[job_of(live)].insert(live.by.node->host);
  }
  for (const LiveLaunch& live : all) {
    const auto job = jobs.find(job_of(live));
    if (job != jobs.end() && std::ssize(job->second) < live.launch.nnodes_max.value_or(0))
      jobs.erase(job);
  }
  return jobs;
}

bool started(const LiveLaunch& live, const Processes& workers) {
  return std::ranges::any_of(workers, [&](const Seen& worker) {
    return worker.node == live.by.node && worker.process->parent == live.by.process->pid;
  });
}

// Of several jobs that are complete the one that started these workers counts, else the largest,
// else the first. What is no part of a complete job stays: it may be torn.
std::vector<LiveLaunch> of_one_job(const std::vector<LiveLaunch>& all, const Processes& workers) {
  const auto complete = complete_jobs(all);
  const LiveLaunch* best = nullptr;
  const auto weight = [&](const LiveLaunch& live) {
    return std::pair(started(live, workers), complete.at(job_of(live)).size());
  };
  for (const LiveLaunch& live : all) {
    if (!complete.contains(job_of(live))) continue;
    if (best == nullptr || weight(live) > weight(*best)) best = &live;
  }
  std::vector<LiveLaunch> kept;
  std::ranges::copy_if(all, std::back_inserter(kept), [&](const LiveLaunch& live) {
    const std::string key = job_of(live);
    return !complete.contains(key) || key == job_of(*best);
  });
  return kept;
}

std::optional<int> count_workers(const Processes& workers) {
  std::map<std::string, int> by_node;
  for (const Seen& seen : workers) {
    const auto said = variable(*seen.process, "LOCAL_WORLD_SIZE");
    if (said) {
      if (const auto count = parse_int_within(*said, 1, 4096)) return count;
    }
    if (variable(*seen.process, "RANK")) ++by_node[seen.node->host];
  }
  const auto most =
      std::ranges::max_element(by_node, {}, [](const auto& entry) { return entry.second; });
  return most == by_node.end() ? std::nullopt : std::optional(most->second);
}

}  // namespace

bool job_of_one_node(const NodeFacts& node, const TrainingProcess& process) {
  if (process.role != ProcessRole::worker || !node.processes.known()) return false;
  const std::string master = master_of(process);
  const std::string run = text_of(process, "TORCHELASTIC_RUN_ID");
  Processes same;
  for (const TrainingProcess& other : *node.processes) {
    const bool living =
        other.role == ProcessRole::worker && other.state != "Z" && other.our_network;
    if (living && other.uid == process.uid && master_of(other) == master &&
        text_of(other, "TORCHELASTIC_RUN_ID") == run) {
      same.push_back({&node, &other, master});
    }
  }
  return whole_job(same);
}

LiveJob live_job(const std::vector<NodeFacts>& nodes, const Settings& known) {
  Processes all = alive(nodes, known);
  if (nodes.size() > 1) {
    std::erase_if(all, [](const Seen& seen) { return job_of_one_node(*seen.node, *seen.process); });
  }
  const std::string master = busiest_master(all);
  LiveJob job;
  Processes workers;
  for (const Seen& seen : all) {
    if (seen.process->role != ProcessRole::worker || seen.master != master) continue;
    workers.push_back(seen);
    take_settings(seen, job);
    job.maps_nccl = job.maps_nccl || !seen.process->nccl_library.empty();
  }
  for (LiveLaunch& live : of_one_job(launches_of(all, nodes.size() > 1), workers)) {
    // An agent that has no worker yet still tells what they will get.
    if (workers.empty() && live.by.process->role == ProcessRole::agent) take_settings(live.by, job);
    job.launches.push_back(std::move(live.launch));
  }
  job.ranks_per_node = count_workers(workers);
  return job;
}

}  // namespace distdoctor::rules
