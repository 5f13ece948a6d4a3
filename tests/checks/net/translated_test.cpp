#include "checks/net/path_worlds.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// What node1 dials arrives from an address that it does not have.
void translate(World& w, const char* seen_as = "198.51.100.7") {
  for (const std::size_t to : {0U, 2U, 3U}) {
    each_dial(w, 1, to, [&](Dial& dial) { dial.seen_as = addr(seen_as); });
  }
}
void close(World& w, std::size_t to) {
  for (const std::size_t from : {0U, 1U, 2U, 3U}) {
    if (from != to) fail_data(w, from, to, {.outcome = Outcome::timed_out, .seen = Seen::left});
  }
}
void contain(World& w) {
  World::change(w.node(1).identity, [](Identity& identity) { identity.container = "docker"; });
}

Verdict hidden(const char* code, const char* says, Severity severity = blocker) {
  Verdict verdict{
      .code = code,
      .severity = severity,
      .certainty = proved,
      .symptom = Symptom::hang,
      .says = says,
      .blamed = {"node1"},
      .evidence = {"node0 source address of node1: 198.51.100.7 here, 10.20.0.11 there, "
                   "not the same at both ends; tcpdump -ni any host 198.51.100.7"},
      .fixes = {"node1: (manual)"}};
  for (const std::size_t from : {0U, 2U, 3U}) {
    verdict.evidence.push_back(dialled(from, 1,
                                       "timed out on 8 of 8 ephemeral ports (32768 to 60999); the "
                                       "first packet did not arrive there"));
  }
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a container on a bridge",
     [](World& w) {
       contain(w);
       translate(w);
       close(w, 1);
     },
     {hidden("net-container-bridge",
             "node1 is behind address translation (a docker container): its connections arrive "
             "from 198.51.100.7, and node0, node2, node3 cannot connect to 10.20.0.11, which it "
             "announces")}},
    {"a router that translates",
     [](World& w) {
       translate(w);
       close(w, 1);
     },
     {hidden("net-address-translated", "node1 is behind address translation: its connections")}},
    {"near miss: translated, and reached all the same", [](World& w) { translate(w); }},
    {"near miss: not reached, and not translated", [](World& w) { close(w, 1); }},
    {"near miss: another one is not reached",
     [](World& w) {
       translate(w);
       close(w, 2);
     }},
    {"near miss: seen by another address of its own",
     [](World& w) {
       translate(w, "10.10.0.11");
       close(w, 1);
     }},
    {"nobody saw its addresses: a gap",
     [](World& w) {
       translate(w);
       close(w, 1);
       w.node(1).links = Unknown{.kind = Why::timed_out};
     },
     {},
     {"node1 links"}},
};

TEST_CASE("net/translated") {
  run_cases("net/translated", cases);
}

}  // namespace
}  // namespace distdoctor::testing
