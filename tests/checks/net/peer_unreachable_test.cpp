#include "checks/net/path_worlds.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void close(World& w, std::size_t from, std::size_t to, const Failing& how) {
  fail_data(w, from, to, how);
  try_outside(w, from, to, how);
}
void silent_neighbour(Dial& dial, std::size_t to) {
  if (dial.address == addr(fast(to))) {
    fail(dial, Outcome::host_unreachable, false, false);
    dial.error = "no ARP answer from " + fast(to);
  }
}
void no_arp(World& w, std::size_t a, std::size_t b) {
  each_dial(w, a, b, [&](Dial& dial) { silent_neighbour(dial, b); });
  each_dial(w, b, a, [&](Dial& dial) { silent_neighbour(dial, a); });
}

Verdict unreachable(const char* says,
                    const std::vector<std::string>& blamed,
                    const std::vector<std::string>& evidence,
                    const std::vector<std::string>& fixes) {
  return {.code = "net-peer-unreachable",
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = blamed,
          .evidence = evidence,
          .fixes = fixes};
}
std::string silence(std::size_t from, std::size_t to, const char* seen) {
  return dialled(from, to,
                 std::string("timed out on 8 of 8 ephemeral ports (32768 to 60999)") + seen);
}
std::string no_answer(std::size_t from, std::size_t to) {
  return dialled(from, to,
                 "host unreachable on 8 of 8 ephemeral ports (32768 to 60999); the first packet "
                 "did not leave");
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"both drop everything: the first packets arrived",
     [](World& w) {
       close(w, 0, 1, {});
       close(w, 1, 0, {});
     },
     {unreachable(
         "node0 and node1 do not reach each other at 10.20.0.11: nothing comes back on any "
         "port; it is node0 or node1, or what lies between",
         {"node0", "node1"},
         {silence(0, 1, "; the first packet arrived there"),
          silence(1, 0, "; the first packet arrived there")},
         {open_data(1, {0}), open_data(0, {1})})}},
    {"two nodes alone",
     [](World& w) {
       close(w, 0, 1, {.seen = Seen::unwatched});
       close(w, 1, 0, {.seen = Seen::unwatched});
       w.cluster.nodes.resize(2);
       std::erase_if(w.cluster.pairs, [](const PairFacts& pair) {
         return pair.from > "node1" || pair.to > "node1";
       });
     },
     {unreachable("they were tested only with each other",
                  {"node0", "node1"},
                  {silence(0, 1, ""), silence(1, 0, "")},
                  {"node0: (manual)"})}},
    {"no neighbour answers: the node that all miss",
     [](World& w) {
       for (const std::size_t other : {0U, 1U, 3U}) no_arp(w, other, 2);
     },
     {unreachable("node2 and node0, node1, node3 do not reach each other at 10.20.0.12: no ARP "
                  "answer from 10.20.0.12",
                  {"node2"},
                  {no_answer(0, 2), no_answer(1, 2), no_answer(2, 0), no_answer(2, 1),
                   no_answer(2, 3), no_answer(3, 2)},
                  {"node0: (manual)"})}},
    {"no neighbour answers, one way only",
     [](World& w) { each_dial(w, 0, 1, [](Dial& dial) { silent_neighbour(dial, 1); }); },
     {unreachable("node0 does not reach node1 at 10.20.0.11: no ARP answer from 10.20.0.11; the "
                  "other way is open; it is node0 or node1",
                  {"node0", "node1"},
                  {no_answer(0, 1)},
                  {"node0: (manual)"})}},
    {"all miss one, which reaches them",
     [](World& w) {
       for (const std::size_t from : {0U, 1U, 3U}) {
         each_dial(w, from, 2, [](Dial& dial) { silent_neighbour(dial, 2); });
       }
     },
     {unreachable("node0, node1, node3 do not reach node2 at 10.20.0.12: no ARP answer from "
                  "10.20.0.12; the other way is open",
                  {"node2"},
                  {no_answer(0, 2), no_answer(1, 2), no_answer(3, 2)},
                  {"node0: (manual)"})}},
    {"MASTER_PORT fails with them: its port is opened too",
     [](World& w) {
       for (const bool back : {false, true}) {
         each_dial(w, back ? 1 : 0, back ? 0 : 1, [](Dial& dial) {
           if (dial.purpose == Purpose::gloo) fail_at(dial, Outcome::timed_out, Seen::arrived);
         });
       }
       w.cluster.job.gloo = Use::yes;
       for (Dial& dial : w.pair(1, 0).dials) {
         if (dial.purpose == Purpose::master) fail_at(dial, Outcome::timed_out, Seen::arrived);
       }
     },
     {[] {
       const auto opens = [](const char* node, const std::string& peer, PortRange ports,
                             const char* link) {
         const Opening opening{
             .node = node, .peers = {addr(peer)}, .ports = ports, .interface = link};
         return std::string(node) + ": " + open_port_fix(opening).front().command;
       };
       const auto line = [](const char* from, const std::string& to) {
         return std::string(from) + " dial " + to +
                ": timed out on 8 of 8 ephemeral ports (32768 to 60999); the first "
                "packet arrived there, not a connection on each; nc -vz -w 3 " +
                to + " 32768";
       };
       return unreachable("node0 and node1 do not reach each other at 10.10.0.11",
                          {"node0", "node1"}, {line("node0", mgmt(1)), line("node1", mgmt(0))},
                          {opens("node1", mgmt(0), {32768, 60999}, "eth0"),
                           opens("node0", mgmt(1), {32768, 60999}, "eth0"),
                           opens("node0", mgmt(1), {29500, 29500}, "eth0")});
     }()}},

    {"near miss: one direction is open", [](World& w) { close(w, 0, 1, {}); }},
    {"near miss: node0 itself has no route: another check's",
     [](World& w) {
       each_dial(w, 0, 1, [](Dial& dial) {
         fail(dial, Outcome::net_unreachable, false, false);
         dial.error = "connect: ENETUNREACH, at once";
       });
     }},
    {"near miss: the connection tracking table is full",
     [](World& w) {
       close(w, 0, 1, {});
       close(w, 1, 0, {});
       World::change(w.node(0).kernel,
                     [](KernelNet& k) { k.conntrack_count = k.conntrack_max = 65536; });
     }},
};

TEST_CASE("net/peer_unreachable") {
  run_cases("net/peer_unreachable", cases);
}

}  // namespace
}  // namespace distdoctor::testing
