// A job that runs on the nodes of a World, rank by rank.
#pragma once

#include "support/builders.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {

using Variables = std::map<std::string, std::string>;

inline void add_process(World& world, std::size_t node, TrainingProcess process) {
  World::change(world.node(node).processes,
                [&](std::vector<TrainingProcess>& all) { all.push_back(std::move(process)); });
}

// A worker as env:// starts it by hand; its pid is 1000 + 100 * node + its place.
inline void add_rank(World& world, std::size_t node, const Variables& more) {
  Variables env = {{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}, {"WORLD_SIZE", "4"}};
  for (const auto& [name, value] : more) env[name] = value;
  const auto place = world.node(node).processes->size();
  TrainingProcess process{.pid = static_cast<int>(1000 + 100 * node + place),
                          .parent = 1,
                          .uid = 1000,
                          .user = "ann",
                          .state = "S",
                          .age_s = 120};
  process.env = env;
  add_process(world, node, std::move(process));
}

// One rank on each of the four nodes, RANK 0 to 3.
inline void run_job(World& world, const Variables& more = {}) {
  for (std::size_t node = 0; node < world.cluster.nodes.size(); ++node) {
    Variables env = {{"RANK", std::to_string(node)}};
    for (const auto& [name, value] : more) env[name] = value;
    add_rank(world, node, env);
  }
}

// torchrun --nproc_per_node 2 train.py with all its defaults, on one node.
inline void run_one_node_job(World& world, std::size_t node, const Variables& more = {}) {
  for (const char* rank : {"0", "1"}) {
    Variables env = {{"RANK", rank},
                     {"WORLD_SIZE", "2"},
                     {"LOCAL_RANK", rank},
                     {"LOCAL_WORLD_SIZE", "2"},
                     {"GROUP_WORLD_SIZE", "1"},
                     {"TORCHELASTIC_RUN_ID", "none"},
                     {"MASTER_ADDR", "127.0.0.1"}};
    for (const auto& [name, value] : more) env[name] = value;
    add_rank(world, node, env);
  }
}

inline void change_process(World& world,
                           std::size_t node,
                           std::size_t place,
                           void (*change)(TrainingProcess&)) {
  World::change(world.node(node).processes,
                [&](std::vector<TrainingProcess>& all) { change(all.at(place)); });
}

// Changes variables of the first process on a node.
inline void set_variable(World& world, std::size_t node, const Variables& more) {
  World::change(world.node(node).processes, [&](std::vector<TrainingProcess>& all) {
    World::change(all.at(0).env, [&](Variables& env) {
      for (const auto& [name, value] : more) env[name] = value;
    });
  });
}

inline Launch said_launch(LauncherKind kind, int nodes) {
  return {.kind = kind,
          .origin = {.source = Source::command_line, .where = "job.sh:5"},
          .nnodes_min = nodes,
          .nnodes_max = nodes,
          .script = "train.py"};
}

// torchrun --nnodes 4 --node_rank N, seen on node N.
inline void run_torchrun(World& world, std::size_t node, int node_rank, int nodes = 4) {
  Launch launch = said_launch(LauncherKind::torchrun, nodes);
  launch.origin = {.source = Source::process,
                   .node = "node" + std::to_string(node),
                   .where = "pid " + std::to_string(500 + node)};
  launch.node_rank = node_rank;
  world.cluster.job.launches.push_back(std::move(launch));
}

inline Launch& add_launch(World& world, Launch launch) {
  world.cluster.job.launches.push_back(std::move(launch));
  return world.cluster.job.launches.back();
}

}  // namespace distdoctor::testing
