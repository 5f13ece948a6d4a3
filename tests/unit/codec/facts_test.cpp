#include "codec/codec.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::codec;  // NOLINT(google-build-using-namespace): a test of it

TEST_CASE("a node reads back as it was written") {
  const NodeFacts node = testing::healthy_node(0, 4);
  NodeFacts back;
  REQUIRE(read_into(write_node(node), back).has_value());
  CHECK(back == node);
}

TEST_CASE("parts: each says only what it has seen, and they merge") {
  NodeFacts links;
  links.links = testing::healthy_links(0);
  CHECK(write_part(NodeFacts{}) == "{}");
  CHECK(write_part(links).starts_with(R"({"links":[)"));
  NodeFacts denied;
  denied.sockets = Unknown{Why::denied, "sock_diag: EPERM"};
  NodeFacts all{.host = "node0", .reached = true};
  REQUIRE(read_into(write_part(links), all).has_value());
  REQUIRE(read_into(write_part(denied), all).has_value());
  NodeFacts expected{.host = "node0", .reached = true};
  expected.links = links.links;
  expected.sockets = denied.sockets;
  CHECK(all == expected);
}

TEST_CASE("a part that cannot be read changes nothing") {
  NodeFacts node = testing::healthy_node(0, 2);
  const NodeFacts before = node;
  const auto result = read_into(R"({"host":"other","links":[{"name":"eth0","mtu":"x"}]})", node);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().place == "links[0].mtu");
  CHECK(node == before);
}

TEST_CASE("a cluster reads back as it was written, but for what is predicted anew") {
  ClusterFacts cluster = testing::healthy_cluster(3);
  cluster.job.launches = {{.kind = LauncherKind::torchrun, .nnodes_min = 2, .script = "train.py"}};
  const auto back = read_facts_file(write_cluster(cluster), "all.json");
  REQUIRE(back.has_value());
  cluster.predicted = {};
  CHECK(*back == cluster);
}

TEST_CASE("facts of single nodes come together as a cluster") {
  std::vector<ClusterFacts> recordings;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string text = write_facts(testing::healthy_node(i, 2), nullptr);
    recordings.push_back(read_facts_file(text, "node.json").value());
  }
  const auto all = merge(recordings);
  REQUIRE(all.has_value());
  CHECK(all->job.peers == std::vector<std::string>{"node0", "node1"});
  CHECK(all->nodes == testing::healthy_cluster(2).nodes);

  recordings.push_back(recordings.front());
  CHECK(merge(recordings).error().render() ==
        "put the recordings together: the node 'node0' is there twice (nodes[2].host)");
}

// Something in each member, whatever it is.
struct Filling {
  void operator()(std::string_view, std::string& text) { text = "9.9"; }
  void operator()(std::string_view, JobSpec& job) { job.settings["MASTER_ADDR"] = {"node0", {}}; }
  template <class T>
  void operator()(std::string_view, std::vector<T>& rows) {
    rows.emplace_back();
  }
};

TEST_CASE("no member of a cluster is lost between --save and --facts") {
  ClusterFacts saved;
  Filling filling;
  fields(filling, saved);
  saved.nodes[0].host = "node0";
  saved.isolations.emplace_back();
  saved.predicted = testing::healthy_cluster(1).predicted;
  const auto back = merge({read_facts_file(write_cluster(saved), "saved.json").value()});
  REQUIRE(back.has_value());
  // A new member does not compile here: say in fields() and below whether it is saved.
  const auto& [job, nodes, pairs, rdma_paths, experiments, isolations, untried, predicted,
               version] = *back;
  CHECK((job == saved.job && job != JobSpec{}));
  CHECK((nodes == saved.nodes && nodes.size() == 1));
  CHECK((pairs == saved.pairs && pairs.size() == 1));
  CHECK((rdma_paths == saved.rdma_paths && rdma_paths.size() == 1));
  CHECK((experiments == saved.experiments && experiments.size() == 1));
  CHECK((untried == saved.untried && untried.size() == 1));
  CHECK((version == saved.version && version == "9.9"));
  // Worked out anew by today's rules, whatever stood there.
  CHECK(isolations.empty());
  CHECK(predicted == Predicted{});
}

TEST_CASE("read_facts_file: what it refuses, in one line with file and place") {
  struct Row {
    std::string_view name;
    std::string_view text;
    std::string_view message;
  };
  const std::vector<Row> rows = {
      {"empty", "", "this is no JSON text (byte 1)"},
      {"not ours", "{}", "no \"schema\" in it: it was not written by distdoctor"},
      {"a report", R"({"schema":"distdoctor/1"})",
       "its schema is 'distdoctor/1'; this version reads distdoctor-cluster/1 and "
       "distdoctor-facts/1"},
      {"a later schema", R"({"schema":"distdoctor-facts/2"})",
       "its schema is 'distdoctor-facts/2'; this version reads distdoctor-cluster/1 and "
       "distdoctor-facts/1"},
      {"no host", R"({"schema":"distdoctor-facts/1"})", "this is no node's name (nodes[0].host)"},
      {"a host for terminals", "{\"schema\":\"distdoctor-facts/1\",\"host\":\"a\\u001b[2J\"}",
       "this is no node's name (nodes[0].host)"},
      {"twice", R"({"schema":"distdoctor-cluster/1","nodes":[{"host":"a"},{"host":"a"}]})",
       "the node 'a' is there twice (nodes[1].host)"},
      {"deep inside",
       R"({"schema":"distdoctor-cluster/1","nodes":[{"links":[{},{},{"mtu":99999999999}]}]})",
       "99999999999 is out of range (at most 2147483647) (nodes[0].links[2].mtu)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto cluster = read_facts_file(row.text, "f.json");
    REQUIRE_FALSE(cluster.has_value());
    CHECK(cluster.error().render() == "read f.json: " + std::string(row.message));
  }
}

TEST_CASE("write_facts: what each library would choose, or its own words") {
  const NodeFacts node = testing::healthy_node(0, 2);
  Prediction prediction = testing::healthy_prediction(0, {});
  const auto shows = [&](std::string_view part) {
    std::string text = write_facts(node, &prediction);
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    CAPTURE(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(shows(R"("nccl":{"library":"/usr/lib/libnccl.so.2","version":"2.28.9")"));
  CHECK(shows(R"("rules":"2.28.3+","bootstrap":{"interface":"eth1","address":"10.20.0.10"},)"));
  CHECK(shows(R"("gloo":{"interface":"eth0","address":"10.10.0.10",)"));
  prediction.nccl = NcclChoice{.bootstrap_error = "no socket interface found"};
  CHECK(shows(R"("bootstrap":{"error":"nosocketinterfacefound"})"));
  prediction.gloo = Unknown{Why::denied, "links"};
  CHECK(shows(R"("gloo":{"unknown":{"kind":"denied","text":"links"}})"));
}
