#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// Of node `from`'s data path to `to`: what gets through. 0: UDP is not answered.
void swallow(World& w, std::size_t from, std::size_t to, int largest, std::int64_t bulk = 0) {
  World::change(w.pair(from, to).paths[0].mtu, [&](PathMtu& mtu) {
    mtu.largest.reset();
    if (largest > 0) mtu.largest = largest;
    mtu.bulk_arrived = false;
    mtu.bulk_bytes = bulk;
  });
}
void swallow_around(World& w, std::size_t node, int largest) {
  for (std::size_t other = 0; other < 4; ++other) {
    if (other == node) continue;
    swallow(w, other, node, largest);
    swallow(w, node, other, largest);
  }
}

std::string line(std::size_t from,
                 std::size_t to,
                 const char* seen = "packets of 1500 bytes pass, larger ones vanish") {
  return "node" + std::to_string(from) + " path to " + fast(to) + ": " + seen +
         "; a transfer in full segments: 0 bytes delivered, not 9000 bytes, the MTU of eth1; ping "
         "-M do -c 3 -s 8972 " +
         fast(to);
}

Verdict hole(const char* says,
             const std::vector<std::string>& blamed,
             const std::vector<std::string>& evidence,
             const std::vector<std::string>& fixes,
             Certainty certainty = proved) {
  return {.code = "net-mtu-black-hole",
          .severity = blocker,
          .certainty = certainty,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = blamed,
          .evidence = evidence,
          .fixes = fixes};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"one node's switch port is narrow",
     [](World& w) { swallow_around(w, 1, 1500); },
     {hole("large packets vanish at node1 or its link: the links say MTU 9000, 1500 bytes get "
           "through",
           {"node1"},
           {line(0, 1), line(1, 0), line(1, 2), line(1, 3), line(2, 1), line(3, 1)},
           {"node1: ip link set dev eth1 mtu 1500"})}},
    {"two nodes, which nothing tells apart",
     [](World& w) {
       swallow(w, 0, 1, 1500);
       swallow(w, 1, 0, 1400);
     },
     {hole("at node0, node1: the links say MTU 9000, 1400 bytes get through",
           {"node0", "node1"},
           {line(0, 1), line(1, 0, "packets of 1400 bytes pass, larger ones vanish")},
           {"node0: ip link set dev eth1 mtu 1400", "node1: ip link set dev eth1 mtu 1400"})}},
    {"UDP is filtered: less sure, and no number to print",
     [](World& w) { swallow(w, 0, 1, 0); },
     {hole("only small ones get through",
           {"node0", "node1"},
           {line(0, 1, "UDP is not answered, small TCP segments pass")},
           {"node0: (manual)"},
           likely)}},
    {"of a library that the job may do without: a notice",
     [](World& w) {
       w.cluster.job.nccl = Use::maybe;
       w.cluster.job.gloo = Use::maybe;
       swallow(w, 0, 1, 1500);
     },
     {[] {
       Verdict made =
           hole("1500 bytes get through", {"node0", "node1"}, {line(0, 1)},
                {"node0: ip link set dev eth1 mtu 1500", "node1: ip link set dev eth1 mtu 1500"});
       made.severity = notice;
       return made;
     }()}},
    {"what was not measured is a gap",
     [](World& w) {
       w.pair(0, 1).paths[0].mtu = Unknown{.kind = Why::timed_out, .text = "budget"};
     },
     {},
     {"node0 path.mtu"}},

    {"near miss: the path is narrow, and TCP was told so",
     [](World& w) {
       World::change(w.pair(0, 1).paths[0].mtu, [](PathMtu& mtu) { mtu.largest = 1400; });
     }},
    {"near miss: slow, but segments arrive", [](World& w) { swallow(w, 0, 1, 1500, 100000); }},
    {"near miss: packets of full size pass", [](World& w) { swallow(w, 0, 1, 9000); }},
    {"near miss: not even small ones pass",
     [](World& w) {
       swallow(w, 0, 1, 1500);
       World::change(w.pair(0, 1).paths[0].mtu, [](PathMtu& mtu) { mtu.small_arrived = false; });
     }},
};

TEST_CASE("net/mtu_black_hole") {
  run_cases("net/mtu_black_hole", cases);
}

}  // namespace
}  // namespace distdoctor::testing
