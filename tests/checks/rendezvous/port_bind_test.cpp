#include "checks/rendezvous/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

const std::string kInUse = "bind 10.10.0.10 port 29500: Address already in use";
const std::string kDenied = "bind 10.10.0.10 port 80: Permission denied";

void fails_to_bind(World& w, const std::string& error) {
  w.cluster.untried.push_back(
      {.node = "node0", .what = "MASTER_PORT", .why = {Why::failed, error}});
}
void all_dials(World& w, Outcome outcome) {
  for (PairFacts& pair : w.cluster.pairs) {
    for (Dial& dial : pair.dials) {
      if (dial.purpose == Purpose::master) dial.outcome = outcome;
    }
  }
}

Verdict taken() {
  return {.code = "rendezvous-port-taken",
          .severity = blocker,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = "MASTER_PORT 29500 on node0 is taken, though nobody listens there",
          .blamed = {"node0"},
          .evidence = {"node0 bind port 29500: " + kInUse +
                       ", not a listener of our own, as rank 0 will open one; python3 -c \"import "
                       "socket; socket.create_server(('', 29500))\"; ss -tanpB | grep -w 29500"},
          .fixes = {"*: MASTER_PORT=29501"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"nothing was said", [](World& w) { w.cluster.predicted.master = {}; }},
    {"bound by somebody who does not listen",
     [](World& w) {
       fails_to_bind(w, kInUse);
       all_dials(w, Outcome::refused);
     },
     {taken()}},
    {"a privileged port",
     [](World& w) {
       w.cluster.predicted.master->port = 80;
       fails_to_bind(w, kDenied);
     },
     {{.code = "rendezvous-port-privileged",
       .severity = blocker,
       .certainty = likely,
       .symptom = Symptom::crash,
       .says = "may not bind MASTER_PORT 80 on node0: ports below "
               "net.ipv4.ip_unprivileged_port_start are root's",
       .blamed = {"node0"},
       .evidence = {"node0 bind port 80: " + kDenied +
                    ", not a listener of our own, as rank 0 will open one; sysctl "
                    "net.ipv4.ip_unprivileged_port_start; id -un"},
       .fixes = {"*: MASTER_PORT=29500"}}}},
    {"another error tells nothing of the job",
     [](World& w) {
       fails_to_bind(w, "bind 10.10.0.10 port 29500: Cannot assign requested address");
     },
     {},
     {"node0 MASTER_PORT"}},

    {"near miss: the one who holds it is seen, and named elsewhere",
     [](World& w) {
       fails_to_bind(w, kInUse);
       all_dials(w, Outcome::refused);
       World::change(w.node(0).sockets, [](SocketFacts& s) {
         s.listeners.push_back({.address = addr("::"), .port = 29500, .backlog = 128});
       });
     }},
    {"near miss: rank 0 has just come up and takes connections",
     [](World& w) { fails_to_bind(w, kInUse); }},
    {"near miss: the dials were dropped, so that nobody knows whether somebody listens",
     [](World& w) {
       fails_to_bind(w, kInUse);
       all_dials(w, Outcome::timed_out);
     },
     {},
     {"node0 MASTER_PORT"}},
    {"near miss: sockets that nobody saw",
     [](World& w) {
       fails_to_bind(w, kInUse);
       all_dials(w, Outcome::refused);
       w.node(0).sockets = Unknown{.kind = Why::denied};
     },
     {},
     {"node0 MASTER_PORT"}},
    {"near miss: no privileged port is refused for another reason",
     [](World& w) { fails_to_bind(w, kDenied); },
     {},
     {"node0 MASTER_PORT"}},
    {"near miss: traffic was not sent for another reason",
     [](World& w) { fails_to_bind(w, "a process on node0 uses it"); }},
    {"near miss: all nodes are started for themselves",
     [](World& w) {
       fails_to_bind(w, kInUse);
       all_dials(w, Outcome::refused);
       for (const std::size_t i : {0UL, 1UL, 2UL, 3UL}) run_one_node_job(w, i);
     }},
};

TEST_CASE("rendezvous/port_bind") {
  run_cases("rendezvous/port_bind", cases);
}

}  // namespace
}  // namespace distdoctor::testing
