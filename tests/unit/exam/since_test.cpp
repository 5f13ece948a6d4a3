#include "exam/since.h"

#include "support/builders.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::exam {
namespace {

using testing::World;

// node1 with two RDMA ports and an interface that have been lost so many times.
NodeFacts node(double uptime_s, std::int64_t lost) {
  NodeFacts node = testing::healthy_node(1, 2);
  node.uptime_s = uptime_s;
  node.rdma =
      Rdma{.devices = {
               {.name = "mlx5_0",
                .node_guid = "a088:c203:0001:0001",
                .ports = {{.number = 1, .counters = {{"link_downed", lost}, {"symbol_error", 9}}},
                          {.number = 2, .counters = {{"symbol_error", 9}}}}}}};
  World::change(node.links, [&](std::vector<Link>& links) {
    for (Link& link : links) {
      if (link.name == "eth1") link.carrier_downs = lost + 10;
    }
  });
  return node;
}

struct Row {
  std::string_view name;
  void (*change)(NodeFacts& then, NodeFacts& now);
  std::string why;  // empty: what is counted stands
};

const std::vector<Row> kApart = {
    {"another name", [](NodeFacts& then, NodeFacts&) { then.host = "other"; },
     "the earlier facts have no node of this name"},
    {"another boot",
     [](NodeFacts&, NodeFacts& now) {
       World::change(now.identity, [](Identity& identity) { identity.boot_id = "another"; });
     },
     "the node has been started anew since the earlier look"},
    {"facts of an older program", [](NodeFacts& then, NodeFacts&) { then.uptime_s = Unknown{}; },
     "the earlier facts do not tell since when the node was up"},
    {"no boot id",
     [](NodeFacts& then, NodeFacts& now) {
       for (NodeFacts* one : {&then, &now}) {
         World::change(one->identity, [](Identity& identity) { identity.boot_id = ""; });
       }
     },
     "the earlier facts do not tell since when the node was up"},
    {"the other way round", [](NodeFacts&, NodeFacts& now) { now.uptime_s = 500.0; },
     "the earlier facts are not older than these"},
    {"the same look", [](NodeFacts& then, NodeFacts& now) { now = then; },
     "the earlier facts are not older than these"},
    {"nothing was counted",
     [](NodeFacts& then, NodeFacts&) {
       then.rdma = Unknown{.kind = Why::denied};
       then.links = Unknown{.kind = Why::denied};
     },
     "the earlier facts count no losses of this node's links"},
    {"now not known",
     [](NodeFacts&, NodeFacts& now) { now.uptime_s = Unknown{Why::timed_out, "x"}; }, "x"},
};

TEST_CASE("an earlier look is taken where it counts on") {
  const ClusterFacts then{.nodes = {testing::healthy_node(0, 2), node(1'000, 3)}};
  ClusterFacts now{.nodes = {node(4'600, 5)}};
  add_earlier(then, now);
  CHECK(*now.nodes[0].earlier == EarlierCounters{.ago_s = 3'600,
                                                 .link_downed = {{"mlx5_0/1", 3}},
                                                 .carrier_downs = {{"eth1", 13}}});
}

TEST_CASE("an earlier look that cannot be compared says why") {
  for (const Row& row : kApart) {
    CAPTURE(row.name);
    NodeFacts then = node(1'000, 3);
    NodeFacts now = node(4'600, 5);
    row.change(then, now);
    ClusterFacts cluster{.nodes = {now}};
    add_earlier({.nodes = {then}}, cluster);
    REQUIRE_FALSE(cluster.nodes[0].earlier.known());
    CHECK(cluster.nodes[0].earlier.why().text == row.why);
  }
}

TEST_CASE("another device or interface of the same name is left out") {
  const ClusterFacts then{.nodes = {node(1'000, 3)}};
  ClusterFacts now{.nodes = {node(4'600, 5)}};
  World::change(now.nodes[0].rdma, [](Rdma& rdma) { rdma.devices[0].node_guid = "other"; });
  add_earlier(then, now);
  CHECK(now.nodes[0].earlier->link_downed.empty());
  CHECK(now.nodes[0].earlier->carrier_downs.size() == 1);
  now.nodes[0] = node(4'600, 5);
  World::change(now.nodes[0].links, [](std::vector<Link>& links) {
    for (Link& link : links) link.mac = "02:00:00:00:00:99";
  });
  add_earlier(then, now);
  CHECK(now.nodes[0].earlier->carrier_downs.empty());
  CHECK(now.nodes[0].earlier->link_downed.size() == 1);
}

TEST_CASE("a node that was not reached has no counters to compare") {
  const ClusterFacts then{.nodes = {node(1'000, 3)}};
  ClusterFacts now{.nodes = {{.host = "node1"}}};
  add_earlier(then, now);
  CHECK(now.nodes[0].earlier.why() == Unknown{});
}

}  // namespace
}  // namespace distdoctor::exam
