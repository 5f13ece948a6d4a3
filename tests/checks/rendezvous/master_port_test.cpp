#include "checks/rendezvous/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict invalid(const char* says, const std::string& evidence, const std::string& fix) {
  return {.code = "rendezvous-port-invalid",
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::crash,
          .says = says,
          .evidence = {evidence},
          .fixes = {fix}};
}
Verdict differs(const char* code,
                const char* says,
                const std::string& node,
                const std::vector<std::string>& evidence,
                const std::string& fix) {
  return {.code = code,
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = {node},
          .evidence = evidence,
          .fixes = {node + ": " + fix}};
}

// Rank i on node i, for four nodes; these settings on the last.
void four_ranks(World& w, const std::map<std::string, std::string>& odd = {}) {
  for (int i = 0; i < 4; ++i)
    add_rank(w, static_cast<std::size_t>(i), i, i == 3 ? odd : decltype(odd){});
}
Launch running_torchrun(int index, const char* port) {
  return {.kind = LauncherKind::torchrun,
          .origin = {.source = Source::process,
                     .node = "node" + std::to_string(index),
                     .where = "pid 70" + std::to_string(index)},
          .nnodes_min = 2,
          .nnodes_max = 2,
          .node_rank = index,
          .master_addr = "node0",
          .master_port = port};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy and running", [](World& w) { four_ranks(w); }},

    {"too large for a port",
     [](World& w) { w.set("MASTER_PORT", "295000"); },
     {invalid("MASTER_PORT is \"295000\", which is no port",
              "node0 MASTER_PORT: 295000 (--env), not a number from 1 to 65535; "
              "printenv MASTER_PORT",
              "*: MASTER_PORT=29500")}},
    {"a word",
     [](World& w) { w.set("MASTER_PORT", "auto"); },
     {invalid("\"auto\"",
              "node0 MASTER_PORT: auto (--env), not a number from 1 to 65535; printenv MASTER_PORT",
              "*: MASTER_PORT=29500")}},
    {"0 is known to nobody else",
     [](World& w) { w.set("MASTER_PORT", "0"); },
     {invalid("\"0\"",
              "node0 MASTER_PORT: 0 (--env), not a number from 1 to 65535; printenv MASTER_PORT",
              "*: MASTER_PORT=29500")}},
    {"a flag of torchrun",
     [](World& w) {
       w.cluster.job.launches = {{.kind = LauncherKind::torchrun,
                                  .origin = {.source = Source::command_line, .where = "run.sh:4"},
                                  .rdzv_endpoint = "node0:29400x"}};
     },
     {invalid("--rdzv_endpoint is \"29400x\"",
              "node0 --rdzv_endpoint: 29400x (run.sh:4), not a number from 1 to 65535; "
              "grep -n torchrun run.sh",
              "*: (manual)")}},
    {"near miss: blanks around it", [](World& w) { w.set("MASTER_PORT", " 29500 "); }},
    {"near miss: only the job's shell knows", [](World& w) { w.set("MASTER_PORT", "$PORT"); }},
    {"near miss: a login shell's",
     [](World& w) { w.set("MASTER_PORT", "auto", Source::environment); }},
    {"near miss: port 0 in a job of one node",
     [](World& w) {
       for (const std::size_t i : {0U, 1U}) run_one_node_job(w, i);
     }},
    {"near miss: port 0 in a job of one node, beside a job of two",
     [](World& w) {
       w.cluster.job.launches = {running_torchrun(0, ""), running_torchrun(1, "")};
       run_one_node_job(w, 2);
     }},
    {"port 0 for several nodes",
     [](World& w) {
       run_one_node_job(w, 0);
       w.cluster.job.launches[0].nnodes_max = 2;
     },
     {invalid("--rdzv_endpoint is \"0\"",
              "node0 --rdzv_endpoint: 0 (pid 800 on node0), not a number from 1 to 65535; "
              "tr '\\0' ' ' < /proc/800/cmdline",
              "*: (manual)")}},
    {"near miss: endpoints without a port, and with an IPv6 address",
     [](World& w) {
       for (const char* text : {"node0", "fd00::1", "[fd00::1]", "[fd00::1]:29400"}) {
         w.cluster.job.launches.push_back({.kind = LauncherKind::torchrun, .rdzv_endpoint = text});
       }
     }},
    {"near miss: one node alone",
     [](World& w) {
       w.set("MASTER_PORT", "0");
       w.cluster.nodes.resize(1);
     }},

    {"one rank has another port",
     [](World& w) { four_ranks(w, {{"MASTER_PORT", "29501"}}); },
     {differs("rendezvous-port-differs",
              "do not all name MASTER_PORT 29500",
              "node3",
              {"node3 MASTER_PORT of pid 4003 (rank 3): 29501, not 29500, as pid 4000 (rank 0) on "
               "node0 has it; tr '\\0' '\\n' < /proc/4003/environ | grep ^MASTER_PORT="},
              "MASTER_PORT=29500")}},
    {"rank 0 is right, even alone",
     [](World& w) {
       add_rank(w, 0, 0, {{"WORLD_SIZE", "3"}});
       add_rank(w, 1, 1, {{"WORLD_SIZE", "3"}, {"MASTER_PORT", "29501"}});
       add_rank(w, 1, 2, {{"WORLD_SIZE", "3"}, {"MASTER_PORT", "29501"}});
     },
     {differs("rendezvous-port-differs",
              "do not all name MASTER_PORT 29500",
              "node1",
              {"node1 MASTER_PORT of pid 4001 (rank 1): 29501, not 29500, as pid 4000 (rank 0) on "
               "node0 has it; tr '\\0' '\\n' < /proc/4001/environ | grep ^MASTER_PORT=",
               "node1 MASTER_PORT of pid 4002 (rank 2): 29501, not 29500, as pid 4000 (rank 0) on "
               "node0 has it; tr '\\0' '\\n' < /proc/4002/environ | grep ^MASTER_PORT="},
              "MASTER_PORT=29500")}},
    {"two running torchruns",
     [](World& w) {
       w.cluster.job.launches = {running_torchrun(0, ""), running_torchrun(1, "29501")};
     },
     {differs("rendezvous-port-differs",
              "do not all name MASTER_PORT 29500",
              "node1",
              {"node1 MASTER_PORT of torchrun, pid 701 (node rank 1): 29501, not 29500, as "
               "torchrun, pid 700 (node rank 0) on node0 has it; pgrep -af torchrun"},
              "(manual)")}},
    {"near miss: two jobs with all their ranks",
     [](World& w) {
       four_ranks(w);
       for (int i = 0; i < 4; ++i) {
         add_rank(w, static_cast<std::size_t>(i), i, {{"MASTER_PORT", "29501"}});
       }
     }},
    {"near miss: two jobs that lack the same rank",
     [](World& w) {
       for (int i = 0; i < 3; ++i) {
         add_rank(w, static_cast<std::size_t>(i), i);
         add_rank(w, static_cast<std::size_t>(i), i, {{"MASTER_PORT", "29501"}});
       }
     }},
    {"near miss: a rest from yesterday beside a job that lacks its rank 0",
     [](World& w) {
       add_rank(w, 0, 0, {{"MASTER_PORT", "29501"}}, [](TrainingProcess& p) { p.age_s = 86400; });
       for (int i = 1; i < 4; ++i) add_rank(w, static_cast<std::size_t>(i), i);
     }},
    {"near miss: jobs of other sizes",
     [](World& w) {
       add_rank(w, 0, 0);
       add_rank(w, 1, 1, {{"MASTER_PORT", "29501"}, {"WORLD_SIZE", "2"}});
     }},
    {"near miss: a container with a network of its own",
     [](World& w) {
       for (int i = 0; i < 3; ++i) add_rank(w, static_cast<std::size_t>(i), i);
       add_rank(w, 3, 3, {{"MASTER_PORT", "29501"}},
                [](TrainingProcess& p) { p.our_network = false; });
     }},
    {"near miss: jobs of two users",
     [](World& w) {
       add_rank(w, 0, 0);
       add_rank(w, 1, 1, {{"MASTER_PORT", "29501"}}, [](TrainingProcess& p) { p.user = "bob"; });
     }},

    {"one rank has another machine's address",
     [](World& w) { four_ranks(w, {{"MASTER_ADDR", "node3"}}); },
     {differs("rendezvous-addr-differs",
              "rank 0 is on node0",
              "node3",
              {"node3 MASTER_ADDR of pid 4003 (rank 3): node3, not node0, as pid 4000 (rank 0) on "
               "node0 has it; tr '\\0' '\\n' < /proc/4003/environ | grep ^MASTER_ADDR="},
              "MASTER_ADDR=node0")}},
    {"near miss: two names of one machine",
     [](World& w) { four_ranks(w, {{"MASTER_ADDR", "10.20.0.10"}}); }},
    {"near miss: rank 0 says localhost, which is itself",
     [](World& w) {
       add_rank(w, 0, 0, {{"MASTER_ADDR", "localhost"}});
       for (int i = 1; i < 4; ++i) add_rank(w, static_cast<std::size_t>(i), i);
     }},
    {"a name that nobody looked up is a gap",
     [](World& w) { four_ranks(w, {{"MASTER_ADDR", "head"}}); },
     {},
     {"node3 names.head"}},
    {"unseen processes are a gap",
     [](World& w) { w.node(1).processes = Unknown{.kind = Why::denied, .text = "/proc: hidepid"}; },
     {},
     {"node1 processes"}},
};

TEST_CASE("rendezvous/master_port") {
  run_cases("rendezvous/master_port", cases);
}

}  // namespace
}  // namespace distdoctor::testing
