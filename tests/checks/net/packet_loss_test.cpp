#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void lose(World& w, std::size_t from, std::size_t to, int first, int second) {
  w.pair(from, to).paths[0].loss = Loss{1000, 1000 - first, 1000, 1000 - second};
}

std::string line(std::size_t from,
                 std::size_t to,
                 const char* seen,
                 const char* wanted = "1 % at most (default)") {
  return "node" + std::to_string(from) + " loss to " + fast(to) + ": " + seen + ", not " + wanted +
         "; ping -q -c 1000 -i 0.002 " + fast(to);
}

Verdict loss(const char* says,
             const std::vector<std::string>& blamed,
             const std::vector<std::string>& evidence,
             const std::vector<std::string>& fixes) {
  return {.code = "net-packet-loss",
          .severity = degraded,
          .certainty = proved,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = blamed,
          .evidence = evidence,
          .fixes = fixes};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"one node loses what comes in",
     [](World& w) {
       for (const std::size_t from : {0U, 1U, 3U}) lose(w, from, 2, 50, 60);
     },
     {loss("up to 5.0 % of packets are lost at node2 or its link",
           {"node2"},
           {line(0, 2, "5.0 % of 1000 packets, then 6.0 % of 1000"),
            line(1, 2, "5.0 % of 1000 packets, then 6.0 % of 1000"),
            line(3, 2, "5.0 % of 1000 packets, then 6.0 % of 1000")},
           {"node2: (manual)"})}},
    {"one pair: both ends, as nothing tells them apart",
     [](World& w) { lose(w, 0, 1, 11, 12); },
     {loss("up to 1.1 % of packets are lost at node0, node1",
           {"node0", "node1"},
           {line(0, 1, "1.1 % of 1000 packets, then 1.2 % of 1000")},
           {"node0: (manual)", "node1: (manual)"})}},
    {"the policy is stricter",
     [](World& w) {
       w.expect.max_loss = {.value = 0.001, .origin = "policy.toml:4"};
       lose(w, 0, 1, 5, 5);
     },
     {loss(
         "up to 0.5 %",
         {"node0", "node1"},
         {line(0, 1, "0.5 % of 1000 packets, then 0.5 % of 1000", "0.1 % at most (policy.toml:4)")},
         {"node0: (manual)", "node1: (manual)"})}},
    {"what was not measured is a gap",
     [](World& w) {
       w.pair(0, 1).paths[0].loss =
           Unknown{.kind = Why::failed, .text = "no UDP packet of ours came through"};
     },
     {},
     {"node0 path.loss"}},

    {"near miss: exactly at the limit", [](World& w) { lose(w, 0, 1, 10, 10); }},
    {"near miss: seen once, not again", [](World& w) { lose(w, 0, 1, 80, 9); }},
    {"near miss: not repeated",
     [](World& w) { w.pair(0, 1).paths[0].loss = Loss{.sent = 1000, .received = 900}; }},
};

TEST_CASE("net/packet_loss") {
  run_cases("net/packet_loss", cases);
}

}  // namespace
}  // namespace distdoctor::testing
