#include "checks/env/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

const std::vector<std::string> kNobody = {"node0 ranks", "node1 ranks", "node2 ranks",
                                          "node3 ranks"};

std::string row(int node,
                const std::string& name,
                const std::string& seen,
                const std::string& want) {
  const std::string pid = std::to_string(1000 + 100 * node);
  return "node" + std::to_string(node) + " pid " + pid + " " + name + ": " + seen + ", not " +
         want + "; tr '\\0' '\\n' < /proc/" + pid + "/environ | grep -E '(RANK|WORLD_SIZE)='";
}

Verdict duplicate(const std::string& says, const std::vector<int>& nodes, const std::string& rank) {
  Verdict verdict{.code = "env-rank-duplicate",
                  .severity = blocker,
                  .certainty = proved,
                  .symptom = Symptom::hang,
                  .says = says};
  for (const int node : nodes) {
    verdict.blamed.push_back("node" + std::to_string(node));
    verdict.evidence.push_back(row(node, "RANK", rank, "a number of its own"));
  }
  verdict.fixes = {"*: (manual)"};
  return verdict;
}

// `here`: the ranks on each node.
Verdict missing(const std::string& says, const std::vector<std::string>& here, int last = 3) {
  Verdict verdict{.code = "env-rank-missing",
                  .severity = blocker,
                  .certainty = likely,
                  .symptom = Symptom::hang,
                  .says = says};
  for (std::size_t i = 0; i < here.size(); ++i) {
    verdict.evidence.push_back("node" + std::to_string(i) + " ranks that run: " + here[i] +
                               ", not all of 0 to " + std::to_string(last) +
                               " over the nodes; grep -lz ^RANK= /proc/[0-9]*/environ");
  }
  verdict.fixes = {"*: (manual)"};
  return verdict;
}

Verdict not_yet(const std::string& says, const std::vector<std::string>& here, int last = 3) {
  Verdict verdict = missing(says, here, last);
  verdict.severity = notice;
  verdict.certainty = possible;
  return verdict;
}

Verdict formula(Severity severity, Certainty certainty, const std::vector<std::string>& rows) {
  return {.code = "env-rank-formula",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::hang,
          .says = "are not NODE_RANK x LOCAL_WORLD_SIZE + LOCAL_RANK",
          .blamed = {"node1", "node2"},
          .evidence = rows,
          .fixes = {"*: (manual)"}};
}

// NODE_RANK as it should be, RANK as the row says.
void numbered(World& world, const std::vector<int>& ranks) {
  run_job(world, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}});
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    set_variable(world, i, {{"NODE_RANK", std::to_string(i)}, {"RANK", std::to_string(ranks[i])}});
  }
}

const std::vector<CheckCase> cases = {
    {"nothing runs: nobody has a number", [](World&) {}, {}, kNobody},
    {"a healthy job", [](World& w) { run_job(w); }},
    {"two healthy jobs of one user",
     [](World& w) {
       run_job(w);
       run_job(w, {{"MASTER_PORT", "29501"}});
     }},
    {"one rank alone is a healthy job",
     [](World& w) { add_rank(w, 0, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}); }},
    {"jobs of one node each, with torchrun's defaults",
     [](World& w) {
       for (const std::size_t node : {0U, 1U, 2U}) run_one_node_job(w, node);
     }},
    {"jobs of one node each that are still starting",
     [](World& w) {
       for (const std::size_t node : {0U, 1U}) {
         run_one_node_job(w, node);
         World::change(w.node(node).processes, [](auto& all) { all.pop_back(); });
       }
     },
     {not_yet("of 2 ranks 1 run on the named nodes; missing: 1", {"0", "none", "none", "none"}, 1),
      not_yet(
          "of 2 ranks 1 run on the named nodes; missing: 1", {"none", "0", "none", "none"}, 1)}},
    {"jobs of one node each by mp.spawn on one port",
     [](World& w) {
       for (const std::size_t node : {0U, 1U}) {
         for (const char* rank : {"0", "1"}) {
           add_rank(w, node, {{"RANK", rank}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}});
         }
       }
     }},
    {"two jobs of two nodes on one port",
     [](World& w) {
       for (const std::size_t node : {0U, 1U, 2U, 3U}) {
         add_rank(w, node,
                  {{"RANK", node % 2 == 0 ? "0" : "1"},
                   {"WORLD_SIZE", "2"},
                   {"MASTER_ADDR", node < 2 ? "node0" : "10.10.0.12"}});
       }
     }},
    {"two jobs of two nodes on one port, each of which lacks its last rank",
     [](World& w) {
       for (const std::size_t node : {0U, 2U}) {
         add_rank(
             w, node,
             {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", node == 0 ? "node0" : "node2"}});
       }
     },
     {not_yet("missing: 1", {"0", "none", "none", "none"}, 1),
      not_yet("missing: 1", {"none", "none", "0", "none"}, 1)}},
    {"one number twice, though the nodes write MASTER_ADDR in two ways",
     [](World& w) {
       run_job(w);
       set_variable(w, 0, {{"RANK", "1"}, {"MASTER_ADDR", "localhost"}});
     },
     {duplicate("2 processes of one job share rank 1", {0, 1}, "1"),
      missing("of 4 ranks 3 run on the named nodes; missing: 0", {"1", "1", "2", "3"})}},
    {"WORLD_SIZE differs on one node",
     [](World& w) {
       run_job(w);
       set_variable(w, 2, {{"WORLD_SIZE", "5"}});
     },
     {{.code = "env-world-size-differs",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "1 of 4 do not say 4",
       .blamed = {"node2"},
       .evidence = {row(2, "WORLD_SIZE", "5", "4")},
       .fixes = {"node2: WORLD_SIZE=4"}}}},
    {"WORLD_SIZE: what fits counts, not what most say",
     [](World& w) {
       run_job(w, {{"WORLD_SIZE", "9"}});
       set_variable(w, 0, {{"WORLD_SIZE", "4"}});
     },
     {{.code = "env-world-size-differs",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "3 of 4 do not say 4",
       .blamed = {"node1", "node2", "node3"},
       .evidence = {row(1, "WORLD_SIZE", "9", "4"), row(2, "WORLD_SIZE", "9", "4"),
                    row(3, "WORLD_SIZE", "9", "4")},
       .fixes = {"node1: WORLD_SIZE=4", "node2: WORLD_SIZE=4", "node3: WORLD_SIZE=4"}}}},
    {"near miss: torchrun numbers anew while a node leaves",
     [](World& w) {
       run_job(w, {{"TORCHELASTIC_RUN_ID", "7"}});
       set_variable(w, 3, {{"WORLD_SIZE", "3"}});
     }},
    {"one rank twice, another missing",
     [](World& w) {
       run_job(w);
       set_variable(w, 0, {{"RANK", "1"}});
     },
     {duplicate("2 processes of one job share rank 1", {0, 1}, "1"),
      missing("of 4 ranks 3 run on the named nodes; missing: 0", {"1", "1", "2", "3"})}},
    {"near miss: one number in two jobs",
     [](World& w) {
       run_job(w);
       add_rank(w, 0, {{"RANK", "0"}, {"MASTER_PORT", "29501"}, {"WORLD_SIZE", "1"}});
     }},
    {"near miss: a data loader has its worker's environment",
     [](World& w) {
       run_job(w);
       add_rank(w, 1, {{"RANK", "1"}});
       change_process(w, 1, 1, [](TrainingProcess& loader) { loader.parent = 1100; });
       add_rank(w, 1, {{"RANK", "1"}});
       change_process(w, 1, 2, [](TrainingProcess& loader) { loader.parent = 1101; });
     }},
    {"near miss: orphans and zombies do not count",
     [](World& w) {
       run_job(w);
       add_rank(w, 1, {{"RANK", "0"}});
       change_process(w, 1, 1, [](TrainingProcess& process) { process.orphan = true; });
       add_rank(w, 2, {{"RANK", "0"}});
       change_process(w, 2, 1, [](TrainingProcess& process) { process.state = "Z"; });
     }},
    {"near miss: a job that a shell left on each node",
     [](World& w) {
       run_job(w);
       for (std::size_t i = 0; i < 4; ++i) {
         change_process(w, i, 0, [](TrainingProcess& process) { process.orphan = true; });
       }
     }},
    {"near miss: one of its ranks was left by a shell",
     [](World& w) {
       run_job(w);
       change_process(w, 2, 0, [](TrainingProcess& process) { process.orphan = true; });
     }},
    {"a node has not started yet: no fault, but said",
     [](World& w) {
       run_job(w);
       w.node(3).processes = std::vector<TrainingProcess>{};
     },
     {not_yet("of 4 ranks 3 run on the named nodes; missing: 3", {"0", "1", "2", "none"})}},
    {"rank 0 has not started yet",
     [](World& w) {
       run_job(w);
       w.node(0).processes = std::vector<TrainingProcess>{};
     },
     {not_yet("missing: 0", {"none", "1", "2", "3"})}},
    {"nobody starts a node any more",
     [](World& w) {
       run_job(w);
       for (std::size_t i = 0; i < 3; ++i) {
         change_process(w, i, 0, [](TrainingProcess& process) { process.age_s = 301; });
       }
       w.node(3).processes = std::vector<TrainingProcess>{};
     },
     {missing("of 4 ranks 3 run on the named nodes; missing: 3", {"0", "1", "2", "none"})}},
    {"near miss: a container with a network of its own has a job of the same numbers",
     [](World& w) {
       run_job(w);
       add_rank(w, 1, {{"RANK", "1"}});
       change_process(w, 1, 1, [](TrainingProcess& process) { process.our_network = false; });
     }},
    {"near miss: the missing rank may be the one in a container",
     [](World& w) {
       run_job(w);
       change_process(w, 3, 0, [](TrainingProcess& process) { process.our_network = false; });
     }},
    {"near miss: the job goes on at a machine that is no peer",
     [](World& w) {
       run_job(w, {{"WORLD_SIZE", "5"}});
       World::change(w.node(0).sockets, [](SocketFacts& sockets) {
         sockets.connections.push_back({.state = TcpState::established,
                                        .local = addr(mgmt(0)),
                                        .local_port = 29500,
                                        .remote = addr("10.10.0.99"),
                                        .remote_port = 40000});
       });
     }},
    {"near miss: a subset of the nodes: the ranks talk with a store elsewhere",
     [](World& w) {
       run_job(w, {{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node0"}});
       w.cluster.nodes.erase(w.cluster.nodes.begin());  // with its address
       for (std::size_t i = 0; i < 3; ++i) {
         change_process(w, i, 0, [](TrainingProcess& process) { process.age_s = 301; });
         World::change(w.node(i).names, [](std::vector<Resolution>& names) { names.clear(); });
         World::change(w.node(i).sockets, [&](SocketFacts& sockets) {
           sockets.connections.push_back({.state = TcpState::established,
                                          .local = addr(mgmt(i + 1)),
                                          .local_port = 40000,
                                          .remote = addr(mgmt(0)),
                                          .remote_port = 29500});
         });
       }
     }},
    {"near miss: MASTER_ADDR is no peer's, and its ranks still try",
     [](World& w) {
       run_job(w, {{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "10.10.0.99"}});
       for (std::size_t i = 0; i < 4; ++i) {
         change_process(w, i, 0, [](TrainingProcess& process) { process.age_s = 301; });
       }
     }},
    {"not all connections of the store were seen: said, no more",
     [](World& w) {
       run_job(w, {{"WORLD_SIZE", "5"}});
       World::change(w.node(0).sockets, [](SocketFacts& sockets) { sockets.truncated = true; });
     },
     {not_yet("missing: 4", {"0", "1", "2", "3"}, 4)}},
    {"one node of a job was named: the others' ranks are not missing, but unseen",
     [](World& w) {
       w.cluster.nodes.resize(1);
       add_rank(w, 0, {{"RANK", "0"}, {"WORLD_SIZE", "2"}});
     },
     {},
     {" ranks"}},
    {"two of three nodes, by what torchrun says",
     [](World& w) {
       w.cluster.nodes.resize(2);
       run_job(w, {{"WORLD_SIZE", "3"}, {"GROUP_WORLD_SIZE", "3"}});
     },
     {},
     {" ranks"}},
    {"by what Slurm says",
     [](World& w) {
       w.cluster.nodes.resize(2);
       run_job(w, {{"WORLD_SIZE", "3"}, {"SLURM_JOB_NUM_NODES", "3"}});
     },
     {},
     {" ranks"}},
    {"a job that meets on the one node lacks its rank there",
     [](World& w) {
       w.cluster.nodes.resize(1);
       add_rank(w, 0, {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}});
     },
     {missing("of 2 ranks 1 run on the named nodes; missing: 1", {"0"}, 1)}},
    {"near miss: both nodes that Slurm gave it were named",
     [](World& w) {
       w.cluster.nodes.resize(2);
       run_job(w, {{"WORLD_SIZE", "3"}, {"SLURM_JOB_NUM_NODES", "2"}});
     },
     {missing("missing: 2", {"0", "1"}, 2)}},
    {"many are missing: in short",
     [](World& w) {
       run_job(w, {{"WORLD_SIZE", "1024"}});
       set_variable(w, 3, {{"RANK", "7"}});
     },
     {missing("of 1024 ranks 4 run on the named nodes; missing: 3-6 and 8-1023",
              {"0", "1", "2", "7"},
              1023)}},
    {"a connection of a peer changes nothing",
     [](World& w) {
       run_job(w, {{"WORLD_SIZE", "5"}});
       World::change(w.node(0).sockets, [](SocketFacts& sockets) {
         sockets.connections.push_back({.state = TcpState::established,
                                        .local = addr(mgmt(0)),
                                        .local_port = 29500,
                                        .remote = addr(mgmt(2)),
                                        .remote_port = 40000});
       });
     },
     {missing("missing: 4", {"0", "1", "2", "3"}, 4)}},
    {"near miss: ranks torn over two ports are somebody else's finding",
     [](World& w) {
       run_job(w);
       set_variable(w, 1, {{"MASTER_PORT", "29501"}});
     }},
    {"counted from one",
     [](World& w) {
       for (int i = 0; i < 4; ++i) {
         add_rank(w, static_cast<std::size_t>(i), {{"RANK", std::to_string(i + 1)}});
       }
     },
     {{.code = "env-rank-out-of-range",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::crash,
       .says = "rank 4 of 4 does not exist",
       .blamed = {"node3"},
       .evidence = {row(3, "RANK", "4", "0 to 3")},
       .fixes = {"*: (manual)"}},
      missing("missing: 0", {"1", "2", "3", "4"})}},
    {"another order of numbers is odd, no more",
     [](World& w) { numbered(w, {0, 2, 1, 3}); },
     {formula(notice, possible, {row(1, "RANK", "2", "1"), row(2, "RANK", "1", "2")})}},
    {"broken numbers that do not follow from the node",
     [](World& w) { numbered(w, {0, 3, 3, 3}); },
     {duplicate("3 processes of one job share rank 3", {1, 2, 3}, "3"),
      missing("missing: 1 and 2", {"0", "3", "3", "3"}),
      formula(blocker, proved, {row(1, "RANK", "3", "1"), row(2, "RANK", "3", "2")})}},
    {"near miss: torchrun numbers by itself, NODE_RANK is a stranger's",
     [](World& w) {
       run_job(w, {{"TORCHELASTIC_RUN_ID", "7"},
                   {"NODE_RANK", "0"},
                   {"LOCAL_RANK", "0"},
                   {"LOCAL_WORLD_SIZE", "1"}});
     }},
    {"near miss: nodes with different numbers of processes",
     [](World& w) {
       run_job(w, {{"NODE_RANK", "0"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}});
       set_variable(w, 3, {{"LOCAL_WORLD_SIZE", "2"}});
     }},
    {"a node whose processes nobody saw: nothing is missing for certain",
     [](World& w) {
       run_job(w);
       w.node(3).processes = Unknown{.kind = Why::denied, .text = "open /proc: EACCES"};
     },
     {},
     {"node3 processes"}},
    {"a worker whose environment nobody may read",
     [](World& w) {
       run_job(w);
       change_process(w, 3, 0, [](TrainingProcess& process) {
         process.env = Unknown{.kind = Why::denied, .text = "open environ: EACCES"};
       });
     },
     {},
     {"node3 processes.1300.env"}},
    {"no node", [](World& w) { w.cluster.nodes.clear(); }},
};

TEST_CASE("env/numbering") {
  run_cases("env/numbering", cases);
}

}  // namespace
}  // namespace distdoctor::testing
