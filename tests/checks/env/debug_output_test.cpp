#include "checks/env/jobs.h"
#include "checks/env/variables.h"

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict silenced(const std::string& says, const std::string& row, const std::string& fix) {
  return {.code = "env-debug-silenced",
          .severity = notice,
          .certainty = proved,
          .symptom = Symptom::crash,
          .says = says,
          .blamed = {"node1"},
          .evidence = {row},
          .fixes = {fix}};
}

Verdict shared_file(const std::string& path) {
  return {.code = "env-debug-file-shared",
          .severity = notice,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = "the ranks of a node overwrite each other's output",
          .blamed = {"node1"},
          .evidence = {said_row("NCCL_DEBUG_FILE", path, "%h and %p in it: host and process")},
          .fixes = {"*: NCCL_DEBUG_FILE=" + path + ".%h.%p"}};
}

void debug_file(World& w, const std::string& path, int ranks) {
  say_on(w, 1, "NCCL_DEBUG", "INFO");
  say_on(w, 1, "NCCL_DEBUG_FILE", path);
  w.cluster.job.ranks_per_node = ranks;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"NVIDIA's container", nvidia_container},
    {"AWS with EFA", aws_efa},
    {"Google's TCPX", google_tcpx},
    {"a tuned InfiniBand cluster",
     [](World& w) {
       tuned_infiniband(w);
       w.cluster.job.ranks_per_node = 8;
     }},
    {"no such level",
     [](World& w) { say_on(w, 1, "NCCL_DEBUG", "DEBUG"); },
     {silenced("NCCL_DEBUG=DEBUG on node1: NCCL knows no such level and prints nothing",
               said_row("NCCL_DEBUG", "DEBUG", "VERSION, WARN, INFO, ABORT or TRACE"),
               "node1: NCCL_DEBUG=INFO")}},
    {"no such subsystem",
     [](World& w) {
       say_on(w, 1, "NCCL_DEBUG", "WARN");
       say_on(w, 1, "NCCL_DEBUG_SUBSYS", "INIT NET");
     },
     {silenced("knows no such subsystem",
               said_row("NCCL_DEBUG_SUBSYS", "INIT NET", "INIT,BOOTSTRAP,ENV,NET, ..."),
               "node1: NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET")}},
    {"near miss: nothing is to be printed",
     [](World& w) {
       say(w, "NCCL_DEBUG_SUBSYS", "bogus");
       say(w, "NCCL_DEBUG", "VERSION");
     }},
    {"near miss: off is off", [](World& w) { say(w, "NCCL_DEBUG", "NONE"); }},
    {"one file for eight ranks",
     [](World& w) { debug_file(w, "/tmp/nccl.%h.log", 8); },
     {shared_file("/tmp/nccl.%h.log")}},
    {"one file for two live ranks",
     [](World& w) {
       debug_file(w, "/tmp/nccl.log", 1);
       w.cluster.job.ranks_per_node = std::nullopt;
       run_one_node_job(w, 1, {{"NCCL_DEBUG_FILE", "/tmp/nccl.log"}});
     },
     {shared_file("/tmp/nccl.log")}},
    {"near miss: one rank a node", [](World& w) { debug_file(w, "/tmp/nccl.log", 1); }},
    {"near miss: a file for each", [](World& w) { debug_file(w, "/tmp/nccl.%p", 8); }},
    {"near miss: a terminal", [](World& w) { debug_file(w, "/dev/stderr", 8); }},
    {"near miss: no level, no file",
     [](World& w) {
       say_on(w, 1, "NCCL_DEBUG_FILE", "/tmp/nccl.log");
       w.cluster.job.ranks_per_node = 8;
     }},
    {"near miss: Gloo",
     [](World& w) {
       debug_file(w, "/tmp/nccl.log", 8);
       say(w, "NCCL_DEBUG", "DEBUG");
       w.cluster.job.nccl = Use::no;
     }},
};

TEST_CASE("env/debug_output") {
  run_cases("env/debug_output", cases);
}

}  // namespace
}  // namespace distdoctor::testing
