// Live ranks and launcher calls for the rows of the rendezvous checks.
#pragma once

#include "support/builders.h"

#include <cstddef>
#include <map>
#include <string>

namespace distdoctor::testing {

// A rank by env:// variables on a node, alive, whose launcher is alive too.
template <class Change = void (*)(TrainingProcess&)>
void add_rank(
    World& w,
    std::size_t index,
    int rank,
    const std::map<std::string, std::string>& more = {},
    Change change = [](TrainingProcess&) {}) {
  TrainingProcess process{.pid = 4000 + rank,
                          .parent = 3000,
                          .uid = 1000,
                          .user = "ann",
                          .state = "S",
                          .age_s = 120,
                          .argv = {"python3", "train.py"}};
  std::map<std::string, std::string> env = {{"RANK", std::to_string(rank)},
                                            {"WORLD_SIZE", std::to_string(w.cluster.nodes.size())},
                                            {"MASTER_ADDR", "node0"},
                                            {"MASTER_PORT", "29500"}};
  for (const auto& [name, value] : more) env[name] = value;
  process.env = env;
  change(process);
  World::change(w.node(index).processes, [&](auto& all) { all.push_back(process); });
}

// Both ranks of a job that needs no other node, at the customary port; by torchrun or by hand.
inline void add_one_node_job(World& w, std::size_t index, bool by_torchrun) {
  std::map<std::string, std::string> env = {{"MASTER_ADDR", "127.0.0.1"}, {"WORLD_SIZE", "2"}};
  if (by_torchrun) env["LOCAL_WORLD_SIZE"] = "2";
  for (const int rank : {0, 1}) add_rank(w, index, rank, env);
}

// What `name` resolves to on a node; no address: it does not.
inline void resolve_to(World& w,
                       std::size_t index,
                       const std::string& name,
                       const std::vector<std::string>& addresses) {
  std::vector<Address> all;
  for (const std::string& text : addresses) all.push_back(addr(text));
  World::change(w.node(index).names, [&](std::vector<Resolution>& rows) {
    std::erase_if(rows, [&](const Resolution& row) { return row.name == name; });
    rows.push_back({.name = name, .files = all, .dns = std::vector<Address>{}, .all = all});
  });
}

// The job says this MASTER_ADDR; nothing else follows by itself.
inline void set_master(World& w, const std::string& host, const std::string& peer = "") {
  w.set("MASTER_ADDR", host);
  w.cluster.predicted.master->host = host;
  w.cluster.predicted.master->node = peer;
  for (PairFacts& pair : w.cluster.pairs) {
    std::erase_if(pair.dials, [](const Dial& dial) { return dial.purpose == Purpose::master; });
  }
}

// torch's documented way to start a job on one node, alive on this one.
inline void run_one_node_job(World& w, std::size_t index, const std::string& port = "0") {
  w.cluster.job.launches.push_back({.kind = LauncherKind::torchrun,
                                    .origin = {.source = Source::process,
                                               .node = w.node(index).host,
                                               .where = "pid 80" + std::to_string(index)},
                                    .nnodes_min = 1,
                                    .nnodes_max = 1,
                                    .rdzv_backend = "c10d",
                                    .rdzv_endpoint = "localhost:" + port});
}

// What comes of dialling the master from a node.
inline Dial& dial_master(
    World& w, std::size_t from, const std::string& to, std::string_view address, Outcome outcome) {
  w.cluster.pairs.push_back({.from = w.node(from).host, .to = to});
  auto& dials = w.cluster.pairs.back().dials;
  dials.push_back(good_dial(Purpose::master, address, 29500, mgmt(from)));
  dials.back().outcome = outcome;
  dials.back().syn_arrived = {};
  return dials.back();
}

}  // namespace distdoctor::testing
