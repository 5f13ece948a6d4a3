#include "checks/wires.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// Wires of 80 Gb/s between links of 100.
void fast_wires(World& w) {
  carry_all(w, speeds(2, 10));
}

std::string line(std::size_t from,
                 std::size_t to,
                 const std::string& seen,
                 const std::string& wanted) {
  return "node" + std::to_string(from) + " TCP to node" + std::to_string(to) + " (" + fast(to) +
         ") by eth1: " + seen + " streams, not " + wanted + "; iperf3 -c " + fast(to) + " -P 8";
}

std::vector<std::string> look(const std::string& node) {
  return {node + ": ethtool eth1; tc -s qdisc show dev eth1; ip -s -s link show dev eth1",
          node + ": (manual)"};
}

const char* const kSlow = "8 Gb/s by 1, 8 Gb/s by 8, 8 Gb/s by 8";
const char* const kAmong = "about 80 Gb/s, as among the others";

// Nobody knows what the links of node1 and its neighbours could do.
void no_speeds(World& w) {
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) {
    w.change_link(i, "eth1", [](Link& link) { link.speed_mbps = std::nullopt; });
  }
}

void two_nodes(World& w, const Speeds& there, const Speeds& back) {
  w.cluster.nodes.resize(2);
  carry(w, 0, 1, there);
  carry(w, 1, 0, back);
}
void links_of(World& w, int mbps) {
  for (const std::size_t i : {0U, 1U}) {
    w.change_link(i, "eth1", [mbps](Link& link) { link.speed_mbps = mbps; });
    w.node(i).pci = Pci{};
  }
}

Verdict verdict(Severity severity,
                Certainty certainty,
                const std::string& says,
                const std::vector<std::string>& blamed,
                const std::vector<std::string>& evidence,
                const std::vector<std::string>& fixes) {
  return {.code = "net-wire-slow",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = blamed,
          .evidence = evidence,
          .fixes = fixes};
}

std::vector<std::string> both(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<CheckCase> cases = {
    {"healthy, nothing measured",
     [](World&) {},
     {},
     {},
     "plain TCP was not measured: bisect does so"},
    {"healthy wires", fast_wires},
    {"healthy: a bond that puts all streams on one of its members",
     [](World& w) {
       two_nodes(w, confirmed(1.15, 1.15), confirmed(1.15, 1.15));
       links_of(w, 10'000);
       for (const std::size_t i : {0U, 1U}) {
         w.change_link(i, "eth1", [](Link& link) {
           link.speed_mbps = 20'000;
           link.bond =
               Bond{.mode = "802.3ad",
                    .hash_policy = "layer2",
                    .aggregator = 1,
                    .members = {{"eth2", true, 10'000, 0, 1}, {"eth3", true, 10'000, 0, 1}}};
         });
       }
     }},
    {"a node that sends slowly",
     [](World& w) {
       fast_wires(w);
       carry(w, 1, 0, confirmed(1, 1));
       carry(w, 1, 2, confirmed(1, 1));
     },
     {verdict(degraded,
              likely,
              "node1 sends at 8 Gb/s at most by plain TCP, where the others reach 80 Gb/s",
              {"node1"},
              {line(1, 0, kSlow, kAmong), line(1, 2, kSlow, kAmong)},
              look("node1"))}},
    {"so fast that a busy processor may be the reason: a notice",
     [](World& w) {
       fast_wires(w);
       carry(w, 1, 0, confirmed(4, 4));
       carry(w, 1, 2, confirmed(4, 4));
     },
     {verdict(notice,
              possible,
              "where the others reach 80 Gb/s among themselves; at that speed a busy processor",
              {"node1"},
              {line(1, 0, "32 Gb/s by 1, 32 Gb/s by 8, 32 Gb/s by 8", kAmong),
               line(1, 2, "32 Gb/s by 1, 32 Gb/s by 8, 32 Gb/s by 8", kAmong)},
              look("node1"))}},
    {"a node that receives slowly",
     [](World& w) {
       fast_wires(w);
       carry(w, 0, 1, confirmed(1, 1));
       carry(w, 2, 1, confirmed(1, 1));
     },
     {verdict(degraded,
              likely,
              "node1 receives at 8 Gb/s",
              {"node1"},
              {line(0, 1, kSlow, kAmong), line(2, 1, kSlow, kAmong)},
              look("node1"))}},
    {"a node that is slow both ways, among three",
     [](World& w) {
       carry_all(w, speeds(2, 10), 3);
       for (const std::size_t other : {0U, 2U}) {
         carry(w, 1, other, confirmed(1, 1));
         carry(w, other, 1, confirmed(1, 1));
       }
     },
     {verdict(degraded,
              likely,
              "node1 sends and receives at 8 Gb/s",
              {"node1"},
              {line(1, 0, kSlow, kAmong), line(1, 2, kSlow, kAmong), line(0, 1, kSlow, kAmong),
               line(2, 1, kSlow, kAmong)},
              look("node1"))}},
    {"its link says itself that it is slow: a notice",
     [](World& w) {
       fast_wires(w);
       w.change_link(1, "eth1", [](Link& link) { link.speed_mbps = 10'000; });
       carry(w, 1, 0, confirmed(1, 1));
       carry(w, 1, 2, confirmed(1, 1));
     },
     {verdict(notice,
              likely,
              "its link is that slow, by its own word",
              {"node1"},
              {line(1, 0, kSlow, kAmong), line(1, 2, kSlow, kAmong)},
              look("node1"))}},
    {"one way between two that are fast with others",
     [](World& w) {
       fast_wires(w);
       carry(w, 1, 2, confirmed(1, 1));
     },
     {verdict(degraded,
              likely,
              "plain TCP node1 -> node2 reaches 8 Gb/s, and 80 Gb/s with others",
              {"node1", "node2"},
              {line(1, 2, kSlow, "about 80 Gb/s")},
              {"*: (manual)"})}},
    {"two nodes, far below what their links claim",
     [](World& w) {
       two_nodes(w, confirmed(0.4, 0.4), speeds(1.1, 1.1));
       links_of(w, 10'000);
     },
     {verdict(degraded,
              possible,
              "plain TCP node0 -> node1 reaches 3.2 Gb/s, expected about 10 Gb/s, the speed of the "
              "links; node0 or node1, or what lies between",
              {"node0", "node1"},
              {line(0,
                    1,
                    "3.2 Gb/s by 1, 3.2 Gb/s by 8, 3.2 Gb/s by 8",
                    "about 10 Gb/s, the speed of the links")},
              both(look("node0"), look("node1")))}},
    {"two nodes, lopsided",
     [](World& w) {
       two_nodes(w, speeds(1, 2), confirmed(0.0075, 0.0075));
       no_speeds(w);
     },
     {verdict(
         degraded,
         possible,
         "plain TCP node1 -> node0 reaches 60 Mb/s, expected about 16 Gb/s",
         {"node1", "node0"},
         {line(
             1, 0, "60 Mb/s by 1, 60 Mb/s by 8, 60 Mb/s by 8", "about 16 Gb/s, as the other way")},
         both(look("node1"), look("node0")))}},

    {"near miss: not seen again",
     [](World& w) {
       fast_wires(w);
       carry(w, 1, 0, speeds(1, 1));
       carry(w, 1, 2, speeds(1, 1));
     }},
    {"near miss: faster the second time",
     [](World& w) {
       fast_wires(w);
       for (const std::size_t to : {0U, 2U}) carry(w, 1, to, {{8, 1, 0.7}, {8, 9, 0.7}});
     }},
    {"near miss: half of the others",
     [](World& w) {
       fast_wires(w);
       carry(w, 1, 0, confirmed(5, 5));
       carry(w, 1, 2, confirmed(5, 5));
     }},
    {"near miss: slow with one, and what the other end does is not known",
     [](World& w) {
       fast_wires(w);
       carry(w, 1, 2, confirmed(1, 1));
       w.pair(3, 2).paths[0].wire = Unknown{};
     }},
    {"near miss: links of unknown speed, where a processor may be the limit",
     [](World& w) {
       fast_wires(w);
       no_speeds(w);
       carry(w, 1, 0, confirmed(1.3, 1.3));
       carry(w, 1, 2, confirmed(1.3, 1.3));
     }},
    {"near miss: all are equally slow", [](World& w) { carry_all(w, confirmed(0.1, 0.1)); }},
    {"near miss: two nodes, as fast as their links",
     [](World& w) {
       two_nodes(w, confirmed(0.1, 0.11), confirmed(0.1, 0.11));
       links_of(w, 1'000);
     }},
    {"near miss: two virtual machines, whose links claim what they like",
     [](World& w) {
       two_nodes(w, confirmed(0.4, 0.4), confirmed(0.4, 0.4));
       links_of(w, 10'000);
       w.node(1).pci = Pci{.virtual_machine = true};
     }},
    {"near miss: two bonds, of which a stream gets one member",
     [](World& w) {
       two_nodes(w, confirmed(0.4, 0.4), confirmed(0.4, 0.4));
       links_of(w, 10'000);
       w.change_link(0, "eth1", [](Link& link) { link.kind = LinkKind::bond; });
     }},
    {"near miss: two nodes whose links are faster than a processor may fill",
     [](World& w) {
       two_nodes(w, confirmed(4, 4), confirmed(4, 4));
       links_of(w, 100'000);
     }},
};

TEST_CASE("net/slow_wire") {
  run_cases("net/slow_wire", cases);
}

}  // namespace
}  // namespace distdoctor::testing
