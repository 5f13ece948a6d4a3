#include "../checks/net/packet_lengths.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void swallow(World& w, std::size_t from, std::size_t to, std::int64_t bulk = 0) {
  World::change(w.pair(from, to).paths[0].mtu, [&](PathMtu& mtu) {
    mtu.bulk_arrived = false;
    mtu.bulk_bytes = bulk;
  });
}

std::string line(std::size_t from, std::size_t to) {
  return "node" + std::to_string(from) + " bulk TCP to " + fast(to) +
         ": 0 of 262144 bytes delivered, twice; UDP packets of 9000 bytes and small TCP segments "
         "pass, not all of it; head -c 262144 /dev/zero | nc -N -w 5 " +
         fast(to) + " PORT (there: nc -l PORT | wc -c)";
}

Verdict lost(const char* says,
             const std::vector<std::string>& blamed,
             const std::vector<std::string>& evidence,
             const std::vector<std::string>& fixes) {
  return {.code = "net-bulk-lost",
          .severity = blocker,
          .certainty = likely,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = blamed,
          .evidence = evidence,
          .fixes = fixes};
}

// What iptables-save shows of a rule whose match by length is not decoded.
void drop_by(World& w,
             std::size_t node,
             const std::string& chain,
             const char* hook,
             const std::string& match) {
  FilterRule rule{.conditions = {{.field = FilterField::protocol, .values = {"tcp"}},
                                 {.field = FilterField::other}},
                  .verdict = FilterVerdict::drop,
                  .packets = 12,
                  .number = 1,
                  .text = "-A " + chain + " -p tcp " + match + " -j DROP"};
  w.cluster.nodes[node].firewall = Firewall{.chains = {{.tool = FilterTool::iptables,
                                                        .family = "ip",
                                                        .table = "filter",
                                                        .name = chain,
                                                        .hook = hook,
                                                        .rules = {rule}}}};
}

void drop_long(World& w, std::size_t node, const char* chain, const char* hook) {
  drop_by(w, node, chain, hook, "-m length --length 2000:65535");
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"nothing arrives, and no rule is known: offloads first",
     [](World& w) { swallow(w, 0, 1); },
     {lost("bulk TCP data vanishes at node0, node1, small segments pass: an offload of the card",
           {"node0", "node1"},
           {line(0, 1)},
           {"node0: ethtool -K eth1 tso off gso off", "node1: ethtool -K eth1 tso off gso off"})}},
    {"the sender's own rule drops long packets",
     [](World& w) {
       for (const std::size_t other : {0UL, 2UL, 3UL}) swallow(w, 1, other);
       drop_long(w, 1, "OUTPUT", "output");
     },
     {lost(
         "bulk TCP data vanishes at node1 or its link, small segments pass: rule \"-A OUTPUT -p "
         "tcp -m length --length 2000:65535 -j DROP\" in chain filter OUTPUT of iptables on node1",
         {"node1"},
         {line(1, 0), line(1, 2), line(1, 3),
          "node1 iptables chain filter OUTPUT, rule 1: -A OUTPUT -p tcp -m length --length "
          "2000:65535 -j DROP (12 packets when it was read), not a rule before it that accepts " +
              fast(0) + ", " + fast(2) + ", " + fast(3) + "; iptables -vnL OUTPUT --line-numbers"},
         {"node1: iptables -I OUTPUT 1 -d " + fast(0) + "," + fast(2) + "," + fast(3) +
          " -p tcp --dport 1:65535 -j ACCEPT"})}},
    {"the receiver's",
     [](World& w) {
       swallow(w, 0, 1);
       drop_long(w, 1, "INPUT", "input");
     },
     {lost("in chain filter INPUT of iptables on node1",
           {"node0", "node1"},
           {line(0, 1),
            "node1 iptables chain filter INPUT, rule 1: -A INPUT -p tcp -m length --length "
            "2000:65535 -j DROP (12 packets when it was read), not a rule before it that accepts " +
                fast(0) + "; iptables -vnL INPUT --line-numbers"},
           {"node1: iptables -I INPUT 1 -s " + fast(0) + " -p tcp --dport 1:65535 -j ACCEPT"})}},
    {"where a rule drops long packets a crawl is no slow path",
     [](World& w) {
       swallow(w, 0, 1, 13'032);
       drop_long(w, 0, "OUTPUT", "output");
     },
     {lost("in chain filter OUTPUT of iptables on node0",
           {"node0", "node1"},
           {"node0 bulk TCP to " + fast(1) +
                ": 13032 of 262144 bytes delivered; UDP packets of 9000 bytes and small TCP "
                "segments pass, not all of it; head -c 262144 /dev/zero | nc -N -w 5 " +
                fast(1) + " PORT (there: nc -l PORT | wc -c)",
            "node0 iptables chain filter OUTPUT, rule 1: -A OUTPUT -p tcp -m length --length "
            "2000:65535 -j DROP (12 packets when it was read), not a rule before it that accepts " +
                fast(1) + "; iptables -vnL OUTPUT --line-numbers"},
           {"node0: iptables -I OUTPUT 1 -d " + fast(1) + " -p tcp --dport 1:65535 -j ACCEPT"})},
     {"node0 path.bulk"}},
    {"of a library that the job may do without: a notice",
     [](World& w) {
       w.cluster.job.nccl = Use::maybe;
       w.cluster.job.gloo = Use::maybe;
       swallow(w, 0, 1);
     },
     {[] {
       Verdict made = lost(
           "bulk TCP data vanishes at node0, node1", {"node0", "node1"}, {line(0, 1)},
           {"node0: ethtool -K eth1 tso off gso off", "node1: ethtool -K eth1 tso off gso off"});
       made.severity = notice;
       return made;
     }()}},
    {"what was not measured is a gap",
     [](World& w) {
       w.pair(0, 1).paths[0].mtu = Unknown{.kind = Why::timed_out, .text = "too little time"};
     },
     {},
     {"node0 path.mtu"}},
    {"some of it came in time: slow or lossy, a gap",
     [](World& w) { swallow(w, 0, 1, 13'032); },
     {},
     {"node0 path.bulk"}},

    {"near miss: a crawl beside a rule that ends short packets",
     [](World& w) {
       swallow(w, 0, 1, 13'032);
       drop_by(w, 0, "OUTPUT", "output", "-m length --length 0:100");
     },
     {},
     {"node0 path.bulk"}},
    {"near miss: a crawl beside a rule that only speaks of length",
     [](World& w) {
       swallow(w, 0, 1, 13'032);
       drop_by(w, 0, "OUTPUT", "output", R"(-m comment --comment "any meta length > 1")");
     },
     {},
     {"node0 path.bulk"}},
    {"near miss: UDP shrinks too, which is a black hole",
     [](World& w) {
       swallow(w, 0, 1);
       World::change(w.pair(0, 1).paths[0].mtu, [](PathMtu& mtu) { mtu.largest = 1500; });
     }},
    {"near miss: the path loses half of all packets",
     [](World& w) {
       swallow(w, 0, 1);
       w.pair(0, 1).paths[0].loss = Loss{.sent = 1000, .received = 500};
     }},
    {"near miss: not even small ones pass",
     [](World& w) {
       swallow(w, 0, 1);
       World::change(w.pair(0, 1).paths[0].mtu, [](PathMtu& mtu) { mtu.small_arrived = false; });
     }},
};

TEST_CASE("the lengths that a rule asks for") {
  struct Row {
    const char* rule;
    int from;
    int to;
  };
  const std::vector<Row> rows = {
      {"-A INPUT -p tcp -m length --length 2000:65535 -j DROP", 2000, 65'535},
      {"-A INPUT -m length --length 40 -j DROP", 40, 40},
      {"-A INPUT -m length --length 1000: -j DROP", 1000, 65'535},
      {"-A INPUT -m length --length :200 -j DROP", 0, 200},
      {"meta length > 1400 drop", 1401, 65'535},
      {"meta length >= 1400 drop", 1400, 65'535},
      {"tcp dport 5000 ip length < 100 counter drop", 0, 99},
      {"ip length <= 100 drop", 0, 100},
      {"ip length 1000-2000 drop", 1000, 2000},
      {"ip6 length == 1280 drop", 1280, 1280},
      {R"(comment "meta length > 1" meta length 60 drop)", 60, 60},
  };
  for (const Row& row : rows) {
    CAPTURE(row.rule);
    const auto lengths = checks::lengths_of(row.rule);
    REQUIRE(lengths.has_value());
    CHECK(lengths->from == row.from);
    CHECK(lengths->to == row.to);
  }
  for (const char* none :
       {"", "length", "-m length ! --length 0:100 -j DROP", "meta length != 100 drop",
        "meta length { 100, 200 } drop", "ip length @sizes drop", "udp length > 1000 drop",
        R"(comment "meta length > 1" drop)", "--length x:y", "meta length > drop"}) {
    CAPTURE(none);
    CHECK_FALSE(checks::lengths_of(none).has_value());
  }
}

TEST_CASE("net/bulk_lost") {
  run_cases("net/bulk_lost", cases);
}

}  // namespace
}  // namespace distdoctor::testing
