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

Verdict malformed(const std::string& host, const std::string& command, const std::string& fix) {
  return {.code = "rendezvous-addr-malformed",
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::crash,
          .says = "MASTER_ADDR is \"" + host + "\", which is neither a host's name nor an address",
          .blamed = {},
          .evidence = {"node0 MASTER_ADDR: " + host +
                       ", not one name, or one address without a prefix length; getent ahosts -- " +
                       command},
          .fixes = {fix}};
}

const std::vector<CheckCase> cases = {
    {"a URL",
     [](World& w) { say(w, "tcp://node0"); },
     {malformed("tcp://node0", "tcp://node0", "*: MASTER_ADDR=node0")}},
    {"a URL with its port",
     [](World& w) { say(w, "tcp://node0:29500"); },
     {malformed("tcp://node0:29500", "tcp://node0:29500", "*: MASTER_ADDR=node0")}},
    {"of the web",
     [](World& w) { say(w, "http://node0/"); },
     {malformed("http://node0/", "http://node0/", "*: MASTER_ADDR=node0")}},
    {"with a user",
     [](World& w) { say(w, "ann@node0"); },
     {malformed("ann@node0", "ann@node0", "*: MASTER_ADDR=node0")}},
    {"with its prefix length",
     [](World& w) { say(w, "10.10.0.10/24"); },
     {malformed("10.10.0.10/24", "10.10.0.10/24", "*: MASTER_ADDR=10.10.0.10")}},
    {"in brackets",
     [](World& w) { say(w, "[10.10.0.10]"); },
     {malformed("[10.10.0.10]", "'[10.10.0.10]'", "*: MASTER_ADDR=10.10.0.10")}},
    {"a list",
     [](World& w) { say(w, "node0,node1"); },
     {malformed("node0,node1", "node0,node1", "*: MASTER_ADDR=10.10.0.10")}},
    {"other letters",
     [](World& w) { say(w, "n\u00f6de0"); },
     {malformed("n\u00f6de0", "'n\u00f6de0'", "*: MASTER_ADDR=10.10.0.10")}},
    {"an option",
     [](World& w) { say(w, "-x"); },
     {malformed("-x", "-x", "*: MASTER_ADDR=10.10.0.10")}},
    {"by a launcher's flag: its own words",
     [](World& w) {
       set_master(w, "tcp://node0");
       w.cluster.job.settings.erase("MASTER_ADDR");
       w.cluster.job.launches.push_back({.kind = LauncherKind::torchrun,
                                         .nnodes_min = 2,
                                         .nnodes_max = 2,
                                         .master_addr = "tcp://node0"});
     },
     {malformed("tcp://node0", "tcp://node0", "*: (manual)")}},
    {"near miss: a line of a hosts file knows it",
     [](World& w) {
       say(w, "n\u00f6de0");
       resolve_to(w, 0, "n\u00f6de0", {"10.10.0.10"});
     }},
    {"near miss: only the job's shell knows it", [](World& w) { say(w, "$(hostname)"); }},
    {"near miss: an underscore", [](World& w) { say(w, "node_0"); }},
    {"near miss: an address with its zone", [](World& w) { say(w, "fe80::1%eth0"); }},
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
