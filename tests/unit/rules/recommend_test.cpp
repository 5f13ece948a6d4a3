#include <distdoctor/facts.h>

#include "rules/predict.h"
#include "support/builders.h"
#include "support/hcas.h"
#include "support/links.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

// Four nodes: eth0 with 1 Gb/s, eth1 with 100 Gb/s, and test traffic that got through: for NCCL to
// eth1, for Gloo to eth0.
struct Row {
  std::string name;
  void (*change)(testing::World&);
  std::string expected;  // "*: A=b C=d" or "node0: ... ; node1: ..."; "" for nothing
};

void set_links(testing::World& world, std::size_t node, const std::string& text) {
  auto links = links_from(text);
  for (Link& link : links) {
    if (link.name == "docker0" || link.name == "br0") link.kind = LinkKind::bridge;
    if (link.name == "tun0") link.kind = LinkKind::tun;
  }
  world.node(node).links = links;
}
std::string numbered(std::string text, std::size_t node) {
  for (auto at = text.find('#'); at != std::string::npos; at = text.find('#')) {
    text.replace(at, 1, std::to_string(node + 10));
  }
  return text;
}
// '#' is 10 for node0, 11 for node1, ...
void set_all_links(testing::World& world, const std::string& text) {
  for (std::size_t i = 0; i < 4; ++i) set_links(world, i, numbered(text, i));
}
void forget_traffic(testing::World& world) {
  for (PairFacts& pair : world.cluster.pairs) pair.dials.clear();
}
void fail_dials(testing::World& world, Purpose purpose, Outcome outcome = Outcome::timed_out) {
  for (PairFacts& pair : world.cluster.pairs) {
    for (Dial& dial : pair.dials) {
      if (dial.purpose == purpose) dial.outcome = outcome;
    }
  }
}
void only_gloo(testing::World& world) {
  world.cluster.job.nccl = Use::no;
  world.cluster.job.gloo = Use::yes;
}
void hostnames_are_loopback(testing::World& world) {
  for (std::size_t i = 0; i < 4; ++i) {
    testing::World::change(world.node(i).names, [&](std::vector<Resolution>& names) {
      names.at(i).all = std::vector{addr("127.0.1.1")};
    });
  }
}

const std::vector<Row> kNothing = {
    {"healthy", [](testing::World&) {}, ""},
    {"automatic, no speed is known",
     [](testing::World& w) {
       w.cluster.job.settings.erase("NCCL_SOCKET_IFNAME");
       set_all_links(w, "lo=127.0.0.1/8 eth0=10.10.0.#/24 eth1=10.20.0.#/24");
     },
     ""},
    {"automatic, the fast link carries data too",
     [](testing::World& w) { w.cluster.job.settings.erase("NCCL_SOCKET_IFNAME"); }, ""},
    {"hardly faster",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "=eth0");
       for (std::size_t i = 0; i < 4; ++i) {
         w.change_link(i, "eth1", [](Link& link) { link.speed_mbps = 1'500; });
       }
     },
     ""},
    {"routed, and those that were asked had an answer",
     [](testing::World& w) {
       for (std::size_t i = 0; i < 4; ++i) {
         set_links(w, i, "lo=127.0.0.1/8 eth0=" + mgmt(i) + "/24 eth1=" + fast(i) + "/32");
       }
       std::erase_if(w.cluster.pairs, [](const PairFacts& pair) { return pair.from == "node3"; });
     },
     ""},
    {"only a subnet of BMCs is common",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "lo");
       forget_traffic(w);
       set_all_links(w, "lo=127.0.0.1/8 usb0=169.254.3.#/24");
     },
     ""},
    {"RDMA carries the data, bootstrap is slow",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "=eth0");
       give_infiniband(w);
     },
     ""},
    {"routed /32 addresses, not tried",
     [](testing::World& w) {
       w.cluster.job.settings.erase("NCCL_SOCKET_IFNAME");
       set_all_links(w, "lo=127.0.0.1/8 eth0=10.10.0.#/32");
     },
     ""},
    {"routed subnets, all addresses answered",
     [](testing::World& w) {
       w.cluster.job.settings.erase("NCCL_SOCKET_IFNAME");
       for (std::size_t i = 0; i < 4; ++i) {
         set_links(w, i, "lo=127.0.0.1/8 eth1=" + fast(i) + "/32 mgmt0=" + mgmt(i) + "/24");
       }
       w.cluster.job.settings["NCCL_SOCKET_IFNAME"] = {.value = "eth1"};
     },
     ""},
    {"NCCL_COMM_ID decides, no name helps",
     [](testing::World& w) { w.set("NCCL_COMM_ID", "127.0.0.1:1"); }, ""},
    {"all is dialled in vain",
     [](testing::World& w) {
       for (const Purpose purpose : {Purpose::nccl_bootstrap, Purpose::nccl_data, Purpose::gloo}) {
         fail_dials(w, purpose);
       }
     },
     ""},
    {"the choice is right, test traffic is dropped, the other link was not tried",
     [](testing::World& w) {
       fail_dials(w, Purpose::nccl_data);
       for (PairFacts& pair : w.cluster.pairs) {
         std::erase_if(pair.dials, [](const Dial& dial) { return dial.purpose == Purpose::gloo; });
       }
     },
     ""},
    {"only one node was seen",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "eth9");
       for (std::size_t i = 1; i < 4; ++i) w.node(i).links = Unknown{};
     },
     ""},
    {"the job uses neither",
     [](testing::World& w) {
       w.cluster.job.nccl = Use::no;
       w.set("NCCL_SOCKET_IFNAME", "eth9");
     },
     ""},
    {"only the job's shell knows what is set",
     [](testing::World& w) {
       w.cluster.job.settings.erase("NCCL_SOCKET_IFNAME");
       w.cluster.job.unresolved["NCCL_SOCKET_IFNAME"] = {.value = "$(pick)"};
     },
     ""},
    {"all nodes are one and the same",
     [](testing::World& w) {
       for (std::size_t i = 1; i < 4; ++i) w.node(i).links = healthy_links(0);
       forget_traffic(w);
     },
     ""},
    {"MASTER_PORT alone does not answer", [](testing::World& w) { fail_dials(w, Purpose::master); },
     ""},
};

const std::vector<Row> kOneList = {
    {"^docker0 leads to lo", [](testing::World& w) { w.set("NCCL_SOCKET_IFNAME", "^docker0"); },
     "*: NCCL_SOCKET_IFNAME==eth1"},
    {"a name that nobody has", [](testing::World& w) { w.set("NCCL_SOCKET_IFNAME", "ens9"); },
     "*: NCCL_SOCKET_IFNAME==eth1"},
    {"the slow link by name", [](testing::World& w) { w.set("NCCL_SOCKET_IFNAME", "=eth0"); },
     "*: NCCL_SOCKET_IFNAME==eth1"},
    {"docker0 with one address everywhere",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "docker0");
       set_all_links(w, "lo=127.0.0.1/8 docker0=172.17.0.1/16 eth1=10.20.0.#/24");
     },
     "*: NCCL_SOCKET_IFNAME==eth1"},
    {"a prefix takes one too many",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "eth1");
       set_all_links(w, "lo=127.0.0.1/8 eth1=10.20.0.#/24 eth10=172.20.#.1/24");
     },
     "*: NCCL_SOCKET_IFNAME==eth1"},
    {"link-local joins the data",
     [](testing::World& w) {
       w.cluster.job.settings.erase("NCCL_SOCKET_IFNAME");
       set_all_links(w, "lo=127.0.0.1/8 eth0=fe80::#/64 eth1=10.20.0.#/24");
     },
     "*: NCCL_SOCKET_IFNAME==eth1"},
    {"other names on other nodes",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "^docker0");
       set_links(w, 0, "lo=127.0.0.1/8 ens5=10.20.0.10/24");
       for (std::size_t i = 1; i < 4; ++i) {
         set_links(w, i, "lo=127.0.0.1/8 eth1=" + fast(i) + "/24");
       }
     },
     "*: NCCL_SOCKET_IFNAME==ens5,eth1"},
    {"the fast link was dialled in vain",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "lo");
       fail_dials(w, Purpose::nccl_data);
     },
     "*: NCCL_SOCKET_IFNAME==eth0"},
    {"the fast link was dialled in vain in one direction only",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "lo");
       w.pair(2, 1).dials.at(1).outcome = Outcome::refused;
     },
     "*: NCCL_SOCKET_IFNAME==eth0"},
    {"test traffic to the choice is dropped, the other link answers",
     [](testing::World& w) { fail_dials(w, Purpose::nccl_data); }, "*: NCCL_SOCKET_IFNAME==eth0"},
    {"no common subnet, but all answered",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "lo");
       for (std::size_t i = 0; i < 4; ++i) {
         set_links(w, i, "lo=127.0.0.1/8 eth1=" + fast(i) + "/32");
       }
     },
     "*: NCCL_SOCKET_IFNAME==eth1"},
    {"the fast link is down on one node",
     [](testing::World& w) { w.change_link(2, "eth1", [](Link& link) { link.running = false; }); },
     "*: NCCL_SOCKET_IFNAME==eth0"},
    {"two nodes have one address",
     [](testing::World& w) {
       w.change_link(2, "eth1", [](Link& link) {
         link.addresses.push_back({.address = addr(fast(1)), .prefix = 24, .label = "eth1"});
       });
     },
     "*: NCCL_SOCKET_IFNAME==eth0"},
    {"NICs before tunnels, whatever their speed",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "lo");
       forget_traffic(w);
       set_all_links(w, "lo=127.0.0.1/8 tun0=10.8.0.#/24 eth7=10.70.0.#/24");
     },
     "*: NCCL_SOCKET_IFNAME==eth7"},
    {"no speed is known: the master's link",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "lo");
       forget_traffic(w);
       set_all_links(w, "lo=127.0.0.1/8 eth5=10.50.0.#/24 eth6=10.10.0.#/24");
     },
     "*: NCCL_SOCKET_IFNAME==eth6"},
    {"IPv6 is wanted",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "lo");
       w.set("NCCL_SOCKET_FAMILY", "AF_INET6");
       forget_traffic(w);
       set_all_links(w, "lo=127.0.0.1/8 eth0=10.10.0.#/24 eth1=10.20.0.#/24,fd00::#/64");
     },
     "*: NCCL_SOCKET_IFNAME==eth1"},
    {"one node was not seen",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "lo");
       w.node(3).reached = false;
       w.node(3).links = Unknown{};
     },
     "*: NCCL_SOCKET_IFNAME==eth1"},
    {"the version is not known",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "lo");
       for (std::size_t i = 0; i < 4; ++i) w.node(i).nccl_library = Unknown{};
     },
     "*: NCCL_SOCKET_IFNAME==eth1"},
};

const std::vector<Row> kGloo = {
    {"Gloo on Debian's line, data",
     [](testing::World& w) {
       only_gloo(w);
       hostnames_are_loopback(w);
     },
     "*: GLOO_SOCKET_IFNAME=eth1"},
    {"both libraries",
     [](testing::World& w) {
       w.cluster.job.gloo = Use::maybe;
       w.set("NCCL_SOCKET_IFNAME", "lo");
       hostnames_are_loopback(w);
     },
     "*: GLOO_SOCKET_IFNAME=eth1 NCCL_SOCKET_IFNAME==eth1"},
    {"a Gloo name that nobody has",
     [](testing::World& w) {
       only_gloo(w);
       w.set("GLOO_SOCKET_IFNAME", "ib7");
     },
     "*: GLOO_SOCKET_IFNAME=eth1"},
    {"Gloo takes no list: a value for each node",
     [](testing::World& w) {
       only_gloo(w);
       w.set("GLOO_SOCKET_IFNAME", "lo");
       forget_traffic(w);
       set_links(w, 0, "lo=127.0.0.1/8 ens5=10.20.0.10/24");
       for (std::size_t i = 1; i < 4; ++i) {
         set_links(w, i, "lo=127.0.0.1/8 eth1=" + fast(i) + "/24");
       }
     },
     "node0: GLOO_SOCKET_IFNAME=ens5; node1: GLOO_SOCKET_IFNAME=eth1; node2: "
     "GLOO_SOCKET_IFNAME=eth1; node3: GLOO_SOCKET_IFNAME=eth1"},
    {"one name means two links: a value for each node",
     [](testing::World& w) {
       w.set("NCCL_SOCKET_IFNAME", "lo");
       forget_traffic(w);
       set_links(w, 0, "lo=127.0.0.1/8 eth0=10.20.0.10/24 eth1=10.91.0.1/24");
       for (std::size_t i = 1; i < 4; ++i) {
         set_links(
             w, i,
             "lo=127.0.0.1/8 eth0=10.92." + std::to_string(i) + ".1/24 eth1=" + fast(i) + "/24");
       }
     },
     "node0: NCCL_SOCKET_IFNAME==eth0; node1: NCCL_SOCKET_IFNAME==eth1; node2: "
     "NCCL_SOCKET_IFNAME==eth1; node3: NCCL_SOCKET_IFNAME==eth1"},
};

std::vector<Prediction> predictions_of(const ClusterFacts& cluster) {
  std::vector<Prediction> predictions;
  for (const NodeFacts& node : cluster.nodes) {
    predictions.push_back(rules::predict_node(cluster.job, node));
  }
  return predictions;
}

std::string words(const Recommended& recommended) {
  std::string text;
  for (const auto& [node, variables] : recommended.env) {
    text += (text.empty() ? "" : "; ") + node + ":";
    for (const auto& [name, value] : variables) text += " " + name + "=" + value;
  }
  return text;
}

void check_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.name);
    testing::World world;
    row.change(world);
    const auto recommended = rules::recommend(world.cluster, predictions_of(world.cluster));
    CHECK(words(recommended) == row.expected);
    CHECK(recommended.reasons.empty() == row.expected.empty());
  }
}

}  // namespace

TEST_CASE("recommend: nothing where nothing has to be set, or nothing helps") {
  check_rows(kNothing);
}
TEST_CASE("recommend: one list for all nodes") {
  check_rows(kOneList);
}
TEST_CASE("recommend: Gloo, and a value for each node") {
  check_rows(kGloo);
}

TEST_CASE("recommend: a node alone needs a name that it has") {
  testing::World world;
  world.cluster = healthy_cluster(1);
  CHECK(words(rules::recommend(world.cluster, predictions_of(world.cluster))).empty());
  world.set("NCCL_SOCKET_IFNAME", "=eth0");
  CHECK(words(rules::recommend(world.cluster, predictions_of(world.cluster))).empty());
  world.set("NCCL_SOCKET_IFNAME", "ens9");
  CHECK(words(rules::recommend(world.cluster, predictions_of(world.cluster))) ==
        "*: NCCL_SOCKET_IFNAME==eth1");
}

TEST_CASE("recommend: says why, and what it knows") {
  testing::World world;
  world.set("NCCL_SOCKET_IFNAME", "^docker0");
  auto recommended = rules::recommend(world.cluster, predictions_of(world.cluster));
  CHECK(recommended.reasons.at("NCCL_SOCKET_IFNAME") ==
        "NCCL: node0 takes lo (127.0.0.1), which leads every node to itself; with this all 4 nodes "
        "meet in 10.20.0.0/24, where every address answered");
  forget_traffic(world);
  world.set("NCCL_SOCKET_IFNAME", "ens9");
  recommended = rules::recommend(world.cluster, predictions_of(world.cluster));
  CHECK(recommended.reasons.at("NCCL_SOCKET_IFNAME") ==
        "NCCL: node0 finds no interface; with this all 4 nodes meet in 10.20.0.0/24");
}

TEST_CASE("recommend: a reason for each variable") {
  testing::World world;
  world.cluster.job.gloo = Use::yes;
  world.set("NCCL_SOCKET_IFNAME", "^docker0");
  world.set("GLOO_SOCKET_IFNAME", "ens9");
  const auto both = rules::recommend(world.cluster, predictions_of(world.cluster));
  REQUIRE(both.reasons.size() == 2);
  CHECK(both.reasons.at("NCCL_SOCKET_IFNAME").starts_with("NCCL: "));
  CHECK_FALSE(both.reasons.at("NCCL_SOCKET_IFNAME").contains("Gloo"));
  CHECK(both.reasons.at("GLOO_SOCKET_IFNAME").starts_with("Gloo: "));
}

TEST_CASE("recommend: a thousand nodes") {
  ClusterFacts cluster = healthy_cluster(2);
  for (std::size_t i = 2; i < 1000; ++i) {
    NodeFacts node = healthy_node(0, 1);
    node.host = "node" + std::to_string(i);
    const std::string end = std::to_string(i / 200) + "." + std::to_string(20 + i % 200);
    node.links = links_from("lo=127.0.0.1/8 eth0=10.10." + end + "/16 eth1=10.20." + end + "/16");
    cluster.nodes.push_back(node);
    cluster.job.peers.push_back(node.host);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    cluster.nodes[i].links =
        links_from("lo=127.0.0.1/8 eth0=" + mgmt(i) + "/16 eth1=" + fast(i) + "/16");
  }
  cluster.pairs.clear();
  cluster.job.settings["NCCL_SOCKET_IFNAME"] = {.value = "^docker0"};
  CHECK(words(rules::recommend(cluster, predictions_of(cluster))) == "*: NCCL_SOCKET_IFNAME==eth0");
}
