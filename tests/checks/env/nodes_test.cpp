#include "checks/env/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

std::string live_row(int node,
                     const std::string& what,
                     const std::string& seen,
                     const std::string& want) {
  const std::string pid = std::to_string(500 + node);
  return "node" + std::to_string(node) + " " + what + " (pid " + pid + "): " + seen + ", not " +
         want + "; tr '\\0' ' ' < /proc/" + pid + "/cmdline";
}

std::string said_row(const std::string& what, const std::string& seen, const std::string& want) {
  return "node0 " + what + " (job.sh:5): " + seen + ", not " + want + "; grep -n node job.sh";
}

Verdict differs(const std::string& says,
                Severity severity,
                Symptom symptom,
                const std::string& nodes) {
  return {.code = "env-nnodes-differs",
          .severity = severity,
          .certainty = severity == notice ? likely : possible,
          .symptom = symptom,
          .says = says,
          .evidence = {said_row("--nnodes", nodes, "4, as many as --peers names")},
          .fixes = {"*: (manual)"}};
}

void below_srun(World& w, int node_rank, int srun_nodes) {
  add_launch(w, said_launch(LauncherKind::srun, srun_nodes));
  Launch& launch = add_launch(w, said_launch(LauncherKind::torchrun, 4));
  launch.node_rank = node_rank;
  launch.under_srun = true;
}

const std::vector<CheckCase> cases = {
    {"nothing was said", [](World&) {}, {}, {}, "no launch of the job is known"},
    {"each node has its number",
     [](World& w) {
       for (int i = 0; i < 4; ++i) run_torchrun(w, static_cast<std::size_t>(i), i);
     }},
    {"two nodes with one number",
     [](World& w) {
       run_torchrun(w, 0, 0);
       run_torchrun(w, 1, 1);
       run_torchrun(w, 2, 1);
     },
     {{.code = "env-node-rank-duplicate",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "2 nodes say that they are node 1",
       .blamed = {"node1", "node2"},
       .evidence = {live_row(1, "--node_rank", "1", "a number of its own"),
                    live_row(2, "--node_rank", "1", "a number of its own")},
       .fixes = {"*: (manual)"}}}},
    {"near miss: two jobs",
     [](World& w) {
       run_torchrun(w, 1, 1);
       run_torchrun(w, 2, 1);
       w.cluster.job.launches.back().master_port = "29501";
     }},
    {"near miss: two jobs with one script and port",
     [](World& w) {
       for (const std::size_t node : {0U, 1U, 2U, 3U}) {
         run_torchrun(w, node, static_cast<int>(node % 2), 2);
         w.cluster.job.launches.back().master_addr = node < 2 ? "node0" : "10.10.0.12";
       }
     }},
    {"near miss: the same of two users, by torchrun's defaults",
     [](World& w) {
       for (const std::size_t node : {0U, 1U, 2U, 3U}) {
         run_torchrun(w, node, static_cast<int>(node % 2), 2);
         add_process(w, node, {.pid = static_cast<int>(500 + node), .uid = node < 2 ? 1000 : 1001});
       }
     }},
    {"near miss: jobs of one node each that say --node_rank 0",
     [](World& w) {
       for (const std::size_t node : {0U, 1U}) run_torchrun(w, node, 0, 1);
     }},
    {"one number, though the nodes write --master_addr in two ways",
     [](World& w) {
       run_torchrun(w, 0, 0);
       run_torchrun(w, 1, 0);
       w.cluster.job.launches[0].master_addr = "localhost";
       w.cluster.job.launches[1].master_addr = "10.10.0.10";
     },
     {{.code = "env-node-rank-duplicate",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "2 nodes say that they are node 0",
       .blamed = {"node0", "node1"},
       .evidence = {live_row(0, "--node_rank", "0", "a number of its own"),
                    live_row(1, "--node_rank", "0", "a number of its own")},
       .fixes = {"*: (manual)"}}}},
    {"near miss: c10d numbers the nodes itself",
     [](World& w) {
       run_torchrun(w, 1, 0);
       run_torchrun(w, 2, 0);
       for (Launch& launch : w.cluster.job.launches) launch.rdzv_backend = "c10d";
     }},
    {"near miss: two torchruns of one node",
     [](World& w) {
       run_torchrun(w, 1, 0);
       run_torchrun(w, 1, 0);
     }},
    {"a number written out below srun",
     [](World& w) { below_srun(w, 0, 4); },
     {{.code = "env-node-rank-duplicate",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "srun starts torchrun with --node_rank 0 on every node",
       .evidence = {said_row("--node_rank", "0", "$SLURM_NODEID in single quotes")},
       .fixes = {"*: (manual)"}}}},
    {"near miss: an srun for one node", [](World& w) { below_srun(w, 1, 1); }},
    {"near miss: the launch line of one node, without srun",
     [](World& w) { add_launch(w, said_launch(LauncherKind::torchrun, 4)).node_rank = 0; }},
    {"nodes disagree about the number of nodes",
     [](World& w) {
       for (int i = 0; i < 4; ++i) run_torchrun(w, static_cast<std::size_t>(i), i, i == 2 ? 3 : 4);
     },
     {{.code = "env-nnodes-differs",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "1 of 4 do not say 4",
       .blamed = {"node2"},
       .evidence = {live_row(2, "--nnodes", "3", "4")},
       .fixes = {"*: (manual)"}}}},
    {"more nodes than were named",
     [](World& w) { add_launch(w, said_launch(LauncherKind::torchrun, 5)); },
     {differs("is for 5 nodes; 4 of them were named", notice, Symptom::hang, "5")}},
    {"fewer nodes than were named",
     [](World& w) { add_launch(w, said_launch(LauncherKind::accelerate, 2)); },
     {differs("for 2 nodes, but 4 are named", notice, Symptom::hang, "2")}},
    {"no --nnodes: each node is a job of its own",
     [](World& w) { add_launch(w, said_launch(LauncherKind::torchrun, 1)); },
     {differs("makes each of 4 nodes a job of its own", degraded, Symptom::wrong_result, "1")}},
    {"near miss: a range that holds the number",
     [](World& w) { add_launch(w, said_launch(LauncherKind::torchrun, 1)).nnodes_max = 4; }},
    {"near miss: standalone",
     [](World& w) { add_launch(w, said_launch(LauncherKind::torchrun, 1)).standalone = true; }},
    {"near miss: only the job's shell knows",
     [](World& w) {
       Launch& launch = add_launch(w, said_launch(LauncherKind::torchrun, 5));
       launch.nnodes_min = launch.nnodes_max = std::nullopt;
     }},
    {"near miss: deepspeed reads a hostfile",
     [](World& w) { add_launch(w, said_launch(LauncherKind::deepspeed, 2)); }},
    {"one node was named",
     [](World& w) {
       w.cluster.nodes.resize(1);
       w.cluster.job.peers.resize(1);
       add_launch(w, said_launch(LauncherKind::torchrun, 2));
     }},
    {"no node", [](World& w) { w.cluster.nodes.clear(); }, {}, {}, "no launch of the job is known"},
};

TEST_CASE("env/nodes") {
  run_cases("env/nodes", cases);
}

}  // namespace
}  // namespace distdoctor::testing
