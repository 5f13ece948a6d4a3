#include "checks/rendezvous/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

// Of rank 1, pid 4001 on node1, to node0.
void connection(World& w, int retransmits, const std::string& remote = fast(0), int pid = 4001) {
  const auto change = [&](SocketFacts& sockets) {
    sockets.connections.push_back({.state = TcpState::established,
                                   .local = addr(fast(1)),
                                   .local_port = 40000,
                                   .remote = addr(remote),
                                   .remote_port = 41000,
                                   .retransmits = retransmits,
                                   .owner = Owner{.pid = pid}});
  };
  World::change(w.node(1).sockets, change);
}
Verdict stalled(const std::string& says, const std::string& times) {
  return {
      .code = "net-connection-stalled",
      .severity = Severity::degraded,
      .certainty = Certainty::likely,
      .symptom = Symptom::hang,
      .says = says,
      .blamed = {"node1", "node0"},
      .evidence = {"node1 connection of pid 4001 to 10.20.0.10:41000: the same data sent " + times +
                   " times over, without an answer, not answers; ss -tnopi dst 10.20.0.10"},
      .fixes = {"node0: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a rank's data is sent again and again",
     [](World& w) {
       add_rank(w, 1, 1);
       connection(w, 6);
     },
     {stalled("node1 gets no answer from node0 on a connection of the job", "6")}},
    {"two of them",
     [](World& w) {
       add_rank(w, 1, 1);
       connection(w, 4);
       connection(w, 9);
     },
     {stalled("node1 gets no answer from node0 on 2 connections of the job", "9")}},
    {"near miss: a packet or two was lost",
     [](World& w) {
       add_rank(w, 1, 1);
       connection(w, 3);
     }},
    {"near miss: somebody else's connection",
     [](World& w) {
       add_rank(w, 1, 1);
       connection(w, 9, fast(0), 77);
     }},
    {"near miss: to a machine that is no peer",
     [](World& w) {
       add_rank(w, 1, 1);
       connection(w, 9, "192.0.2.1");
     }},
    {"near miss: to the node itself",
     [](World& w) {
       add_rank(w, 1, 1);
       connection(w, 9, fast(1));
     }},
    {"near miss: it is only being opened",
     [](World& w) {
       add_rank(w, 1, 1);
       connection(w, 9);
       World::change(w.node(1).sockets, [](SocketFacts& sockets) {
         sockets.connections.back().state = TcpState::syn_sent;
       });
     }},
};

TEST_CASE("net/stalled_connection") {
  run_cases("net/stalled_connection", cases);
}

}  // namespace
}  // namespace distdoctor::testing
