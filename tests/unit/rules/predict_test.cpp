#include "rules/predict.h"

#include "support/builders.h"
#include "support/links.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

struct Layer {
  Source source;
  std::string value;
};

// NCCL_SOCKET_IFNAME as the coordinator says it, and as the node itself has it.
struct Force {
  std::string name;
  std::vector<Layer> job;   // one at most
  std::vector<Layer> node;  // one at most
  std::string expected;
};

const std::vector<Force> kForces = {
    {"nothing", {}, {}, ""},
    {"command line beats the node's environment",
     {{Source::command_line, "said"}},
     {{Source::environment, "own"}},
     "said"},
    {"option beats the node's environment",
     {{Source::option, "said"}},
     {{Source::environment, "own"}},
     "said"},
    {"the node's environment beats the coordinator's",
     {{Source::environment, "theirs"}},
     {{Source::environment, "own"}},
     "own"},
    {"the coordinator's environment travels", {{Source::environment, "theirs"}}, {}, "theirs"},
    {"a variable beats the node's user file",
     {{Source::environment, "theirs"}},
     {{Source::user_config, "file"}},
     "theirs"},
    {"user file", {}, {{Source::user_config, "file"}}, "file"},
    {"system file", {}, {{Source::system_config, "file"}}, "file"},
    {"an empty variable blocks a file",
     {{Source::environment, ""}},
     {{Source::system_config, "file"}},
     ""},
};

Settings layer(const std::vector<Layer>& layers, const std::string& node) {
  Settings settings;
  for (const Layer& row : layers) {
    settings["NCCL_SOCKET_IFNAME"] = {.value = row.value,
                                      .origin = {.source = row.source, .node = node}};
  }
  return settings;
}

TrainingProcess worker(int pid, const std::map<std::string, std::string>& env) {
  TrainingProcess process{.pid = pid};
  process.env = env;
  return process;
}

std::string in_force(const JobSpec& job, const NodeFacts& node, const std::string& name) {
  const Settings settings = rules::settings_in_force(job, node);
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second.value;
}

}  // namespace

TEST_CASE("settings_in_force: weights") {
  for (const Force& row : kForces) {
    CAPTURE(row.name);
    JobSpec job{.settings = layer(row.job, "")};
    NodeFacts node{.host = "node1"};
    node.settings = layer(row.node, "node1");
    CHECK(in_force(job, node, "NCCL_SOCKET_IFNAME") == row.expected);
  }
}

TEST_CASE("settings_in_force: a node whose settings were not seen has the job's") {
  const JobSpec job{.settings = settings_from({"NCCL_DEBUG=INFO"})};
  CHECK(rules::settings_in_force(job, NodeFacts{.host = "node1"}) == job.settings);
}

TEST_CASE("settings_in_force: NCCL's files give NCCL's variables only") {
  NodeFacts node{.host = "node1"};
  node.settings = Settings{{"GLOO_SOCKET_IFNAME", {"eth1", {.source = Source::system_config}}},
                           {"NCCL_DEBUG", {"INFO", {.source = Source::system_config}}}};
  CHECK(in_force({}, node, "GLOO_SOCKET_IFNAME").empty());
  CHECK(in_force({}, node, "NCCL_DEBUG") == "INFO");
}

TEST_CASE("settings_in_force: what the ranks of this job have on this node") {
  JobSpec job{.settings = settings_from({"MASTER_ADDR=node0"})};
  job.settings["NCCL_SOCKET_IFNAME"] = {
      "eth0", {.source = Source::process, .node = "node0", .where = "pid 1"}};
  job.settings["NCCL_DEBUG"] = {"WARN", {.source = Source::command_line}};
  NodeFacts node{.host = "node1"};
  node.processes = std::vector<TrainingProcess>{
      worker(7, {{"MASTER_ADDR", "node0"}, {"NCCL_SOCKET_IFNAME", "eth1"}, {"RANK", "2"}}),
      worker(8, {{"MASTER_ADDR", "node0"}, {"NCCL_DEBUG", "INFO"}, {"RANK", "3"}}),
      worker(9, {{"MASTER_ADDR", "another"}, {"NCCL_IB_HCA", "mlx5_7"}})};
  CHECK(in_force(job, node, "NCCL_SOCKET_IFNAME") == "eth1");
  CHECK(in_force(job, node, "NCCL_DEBUG") == "WARN");
  CHECK(in_force(job, node, "NCCL_IB_HCA").empty());
  CHECK(in_force(job, node, "RANK").empty());  // the ranks differ in it
  const auto settings = rules::settings_in_force(job, node);
  CHECK(settings.at("NCCL_SOCKET_IFNAME").origin ==
        Origin{.source = Source::process, .node = "node1", .where = "pid 7"});
}

TEST_CASE("settings_in_force: not what a job of this node alone has, nor a rest") {
  const JobSpec job{.peers = {"node0", "node1"}};
  NodeFacts node{.host = "node1", .reached = true};
  const auto lone = [](const char* rank, const char* size) {
    return worker(7, {{"MASTER_ADDR", "localhost"}, {"RANK", rank}, {"WORLD_SIZE", size}});
  };
  node.processes = std::vector<TrainingProcess>{lone("1", "2")};
  CHECK(rules::settings_in_force(job, node).contains("MASTER_ADDR"));
  node.processes = std::vector<TrainingProcess>{lone("1", "2"), lone("0", "2")};
  CHECK(rules::settings_in_force(job, node).empty());
  CHECK_FALSE(rules::settings_in_force({.peers = {"node1"}}, node).empty());
  TrainingProcess rest = lone("1", "2");
  rest.orphan = true;
  node.processes = std::vector<TrainingProcess>{rest};
  CHECK(rules::settings_in_force(job, node).empty());
}

TEST_CASE("predict: a healthy cluster") {
  ClusterFacts cluster = healthy_cluster(4);
  cluster.job.gloo = Use::yes;
  const Predicted predicted = rules::predict(cluster);
  REQUIRE(predicted.nodes.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    const Prediction& node = predicted.nodes[i];
    CHECK(node.node == cluster.nodes[i].host);
    CHECK(*node.nccl == NcclChoice{.bootstrap = Choice{"eth1", addr(fast(i))},
                                   .net_socket = {{"eth1", addr(fast(i))}}});
    CHECK(node.nccl_version_known);
    CHECK(*node.hcas == NcclHcas{});
    CHECK(*node.gloo == GlooChoice{.devices = {{"eth0", addr(mgmt(i))}}});
    CHECK_FALSE(node.hosts_endpoint.known());
    CHECK(node.settings == cluster.job.settings);
  }
  CHECK(*predicted.master == *cluster.predicted.master);
  CHECK(predicted.recommended == Recommended{});
}

TEST_CASE("predict: the version of NCCL decides, and older ones where it is not known") {
  NodeFacts node = healthy_node(0, 1);
  node.links = links_from("lo=127.0.0.1/8 virbr0=192.168.122.1/24 eth0=10.0.0.1/24");
  const auto bootstrap = [&](const std::string& version) {
    node.nccl_library = NcclLibrary{.version = version};
    return rules::predict_node({}, node).nccl->bootstrap->interface;
  };
  CHECK(bootstrap("2.28.9") == "eth0");
  CHECK(bootstrap("2.27.3") == "virbr0");
  CHECK(bootstrap("2.18.6") == "virbr0");
  CHECK(rules::predict_node({}, node).nccl->rules == NcclRules::to_2_22);
  node.nccl_library = Unknown{.kind = Why::not_collected};
  const Prediction unknown = rules::predict_node({}, node);
  CHECK_FALSE(unknown.nccl_version_known);
  CHECK(unknown.nccl->bootstrap->interface == "eth0");
  REQUIRE(unknown.nccl_others.size() == 1);
  CHECK(unknown.nccl_others.front().bootstrap->interface == "virbr0");
  node.links = links_from("lo=127.0.0.1/8 eth0=10.0.0.1/24");
  CHECK(rules::predict_node({}, node).nccl_others.empty());
}

TEST_CASE("predict: what cannot be known") {
  JobSpec job;
  job.unresolved = {{"NCCL_SOCKET_IFNAME", {.value = "$(pick)"}}};
  NodeFacts node = healthy_node(0, 1);
  CHECK_FALSE(rules::predict_node(job, node).nccl.known());
  CHECK(rules::predict_node(job, node).gloo.known());
  job.unresolved = {{"GLOO_SOCKET_IFNAME", {.value = "$(pick)"}}};
  CHECK(rules::predict_node(job, node).nccl.known());
  CHECK_FALSE(rules::predict_node(job, node).gloo.known());
  CHECK(rules::predict_node(job, node).hcas.known());
  job.unresolved = {{"NCCL_IB_HCA", {.value = "$(pick)"}}};
  CHECK_FALSE(rules::predict_node(job, node).hcas.known());
  node.reached = false;
  CHECK_FALSE(rules::predict_node({}, node).nccl.known());
  CHECK_FALSE(rules::predict_node({}, node).hcas.known());
  CHECK_FALSE(rules::predict_node({}, node).gloo.known());
  CHECK_FALSE(rules::predict_node({}, node).hosts_endpoint.known());
}

TEST_CASE("predict: what only a shell knows is known once the process was seen") {
  JobSpec job;
  job.unresolved = {{"NCCL_SOCKET_IFNAME", {.value = "$(pick)"}}};
  NodeFacts node = healthy_node(0, 1);
  node.processes = std::vector<TrainingProcess>{worker(7, {{"NCCL_SOCKET_IFNAME", "eth1"}})};
  CHECK(rules::predict_node(job, node).nccl->bootstrap->interface == "eth1");
}

TEST_CASE("predict: torchrun's c10d endpoint") {
  ClusterFacts cluster = healthy_cluster(2);
  Launch launch{.kind = LauncherKind::torchrun, .nnodes_max = 2, .rdzv_backend = "c10d"};
  launch.rdzv_endpoint = "node0:29400";
  cluster.job.launches = {launch};
  Predicted predicted = rules::predict(cluster);
  CHECK(*predicted.nodes[0].hosts_endpoint);
  CHECK_FALSE(*predicted.nodes[1].hosts_endpoint);
  CHECK(*predicted.master == Master{.host = "node0",
                                    .port = std::uint16_t{29400},
                                    .node = "node0",
                                    .addresses = {addr(mgmt(0))},
                                    .endpoint = true});
  cluster.job.launches.front().rdzv_is_host = true;
  CHECK(*rules::predict(cluster).nodes[1].hosts_endpoint);
  cluster.job.launches.front().origin.node = "node0";
  CHECK_FALSE(*rules::predict(cluster).nodes[1].hosts_endpoint);
}

TEST_CASE("find_master: whose address it is") {
  struct Row {
    std::string name;
    void (*change)(testing::World&);
    std::string node;
    std::vector<std::string> addresses;
  };
  const std::vector<Row> rows = {
      {"a name", [](testing::World&) {}, "node0", {mgmt(0)}},
      {"a literal", [](testing::World& w) { w.set("MASTER_ADDR", mgmt(2)); }, "node2", {mgmt(2)}},
      {"another link",
       [](testing::World& w) { w.set("MASTER_ADDR", fast(2)); },
       "node2",
       {fast(2)}},
      {"nobody's", [](testing::World& w) { w.set("MASTER_ADDR", "10.9.9.9"); }, "", {"10.9.9.9"}},
      {"loopback", [](testing::World& w) { w.set("MASTER_ADDR", "127.0.0.1"); }, "", {"127.0.0.1"}},
      {"unresolvable", [](testing::World& w) { w.set("MASTER_ADDR", "nowhere"); }, "", {}},
      {"several nodes have it",
       [](testing::World& w) {
         w.set("MASTER_ADDR", "172.17.0.1");
         for (std::size_t i = 0; i < 4; ++i) {
           w.node(i).links = links_from("docker0=172.17.0.1/16");
         }
       },
       "",
       {"172.17.0.1"}},
      {"loopback on the master itself, an address elsewhere",
       [](testing::World& w) {
         testing::World::change(w.node(0).names, [](std::vector<Resolution>& names) {
           names.at(0).all = std::vector{addr("127.0.1.1")};
         });
       },
       "node0",
       {"127.0.1.1", mgmt(0)}},
      {"the nodes do not agree",
       [](testing::World& w) {
         testing::World::change(w.node(3).names, [](std::vector<Resolution>& names) {
           names.at(0).all = std::vector{addr(mgmt(1))};
         });
       },
       "",
       {mgmt(0), mgmt(1)}},
      {"two addresses of one node",
       [](testing::World& w) {
         for (std::size_t i = 0; i < 4; ++i) {
           testing::World::change(w.node(i).names, [](std::vector<Resolution>& names) {
             names.at(0).all = std::vector{addr(fast(0)), addr(mgmt(0))};
           });
         }
       },
       "node0",
       {fast(0), mgmt(0)}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    testing::World world;
    row.change(world);
    const auto master = rules::predict(world.cluster).master;
    REQUIRE(master.has_value());
    CHECK(master->node == row.node);
    std::vector<std::string> addresses;
    for (const Address& address : master->addresses) addresses.push_back(address.text());
    CHECK(addresses == row.addresses);
  }
}

TEST_CASE("find_master: only the nodes know it, or nobody") {
  testing::World world;
  world.cluster.job.settings.clear();
  CHECK_FALSE(rules::predict(world.cluster).master.has_value());
  world.node(1).settings =
      Settings{{"MASTER_ADDR", {"node0", {.source = Source::environment, .node = "node1"}}}};
  CHECK(rules::predict(world.cluster).master->node == "node0");
}
