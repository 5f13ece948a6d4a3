#include "checks/rendezvous/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void say(World& w, const std::string& value, const std::string& where = "--env") {
  set_master(w, value);
  w.cluster.job.settings["MASTER_ADDR"].origin = {.source = Source::option, .where = where};
}

Verdict blanks(const std::string& shown,
               const std::string& command,
               const std::string& fix,
               Certainty certainty = proved) {
  return {.code = "rendezvous-addr-blanks",
          .severity = blocker,
          .certainty = certainty,
          .symptom = Symptom::crash,
          .says = "MASTER_ADDR is " + shown + ", which can be no host's name",
          .blamed = {},
          .evidence = {"node0 MASTER_ADDR: " + shown +
                       ", not a name or an address, without blanks and control characters; " +
                       command + " | cat -A"},
          .fixes = {fix}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"nothing was said", [](World& w) { w.cluster.predicted.master = {}; }},
    {"a carriage return of the command line",
     [](World& w) { say(w, "node0\r"); },
     {blanks(R"("node0\r" (--env))", "printenv MASTER_ADDR", "*: MASTER_ADDR=node0")}},
    {"of a script: its line ends",
     [](World& w) { say(w, "node0\r", "crlf.sh:3"); },
     {blanks(R"("node0\r" (crlf.sh:3))", "grep -n MASTER_ADDR crlf.sh", "*: (manual)")}},
    {"of a script on a node: mended there",
     [](World& w) {
       say(w, "node0\r", "crlf.sh:3");
       w.cluster.job.settings["MASTER_ADDR"].origin.node = "node0";
     },
     {blanks(R"("node0\r" (crlf.sh:3))",
             "grep -n MASTER_ADDR crlf.sh",
             R"(node0: sed -i 's/\r$//' -- crlf.sh)")}},
    {"blanks on both sides",
     [](World& w) { say(w, " node0 "); },
     {blanks(R"(" node0 " (--env))", "printenv MASTER_ADDR", "*: MASTER_ADDR=node0")}},
    {"behind an address, which some resolvers forgive",
     [](World& w) { say(w, "10.10.0.10\t"); },
     {blanks(R"("10.10.0.10\t" (--env))",
             "printenv MASTER_ADDR",
             "*: MASTER_ADDR=10.10.0.10",
             likely)}},
    {"two words",
     [](World& w) { say(w, "node0 node1"); },
     {blanks(R"("node0 node1" (--env))", "printenv MASTER_ADDR", "*: (manual)")}},

    {"near miss: a launcher's flag decides, not the variable",
     [](World& w) {
       say(w, "node0\r");
       w.cluster.predicted.master->host = "node0";
     }},
    {"near miss: an empty value says nothing", [](World& w) { say(w, ""); }},
    {"near miss: each node is started for itself",
     [](World& w) {
       say(w, "node0\r");
       for (const std::size_t i : {0UL, 1UL, 2UL, 3UL}) run_one_node_job(w, i);
     }},
};

TEST_CASE("rendezvous/addr_written") {
  run_cases("rendezvous/addr_written", cases);
}

}  // namespace
}  // namespace distdoctor::testing
