#include "exam/nodes.h"

#include "support/builders.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace distdoctor::exam {
namespace {

TEST_CASE("names to resolve: the master, endpoints; each once, no literals; peers, a few of many") {
  JobSpec job;
  job.peers = {"node0", "10.0.0.7", "node1"};
  job.settings["MASTER_ADDR"] = {"node0", {}};
  job.launches = {{.rdzv_endpoint = "head.example:29400", .master_addr = "10.0.0.1"},
                  {.rdzv_endpoint = "[fd00::1]:29400"},
                  {.rdzv_endpoint = "fd00::2"},
                  {.rdzv_endpoint = "plain"}};
  CHECK(names_to_resolve(job) == std::vector<std::string>{"node0", "head.example", "plain"});
  CHECK(peers_to_resolve(job) == std::vector<std::string>{"node0", "node1"});
  for (int i = 2; i < 40; ++i) job.peers.push_back("node" + std::to_string(i));
  CHECK(peers_to_resolve(job).size() == 8);
}

TEST_CASE("a second look for libraries changes nothing else, and a lost one nothing at all") {
  NodeFacts node = testing::healthy_node(0, 2);
  const NodeFacts before = node;
  NodeFacts again;
  again.software = Software{.torch = "2.9"};
  again.nccl_library = NcclLibrary{.path = "/ofi/libnccl.so.2"};
  again.links = std::vector<Link>{};
  take_software(Unknown{Why::timed_out, "silent"}, node);
  CHECK(node == before);
  take_software(Answer(again), node);
  CHECK(node.software->torch == "2.9");
  CHECK(node.nccl_library->path == "/ofi/libnccl.so.2");
  CHECK(node.links == before.links);
}

TEST_CASE("what was collected keeps what the channel said") {
  NodeFacts node{.host = "node0",
                 .reached = true,
                 .channel = "ssh",
                 .version = "9",
                 .same_as = "node9",
                 .context = Context::ssh};
  node.clock_offset_ms = 5.0;
  NodeFacts collected = testing::healthy_node(3, 4);
  take_collected(Answer(collected), node);
  CHECK(node.host == "node0");
  CHECK(node.version == "9");
  CHECK(node.same_as == "node9");
  CHECK(node.context == Context::ssh);
  CHECK(*node.clock_offset_ms == 5.0);
  CHECK(node.links == collected.links);
}

TEST_CASE("an agent that never answered is a node that was not reached") {
  NodeFacts node{.host = "node0", .reached = true};
  take_collected(Unknown{Why::timed_out, "silent for 5 s"}, node);
  CHECK_FALSE(node.reached);
  CHECK(node.not_reached == "its agent said hello, then: silent for 5 s");
}

TEST_CASE("the second look at names adds to the first one") {
  NodeFacts node{.host = "node0", .reached = true};
  node.names =
      std::vector{testing::resolution("a", "10.0.0.1"), testing::resolution("b", "10.0.0.2")};
  NodeFacts again;
  again.names =
      std::vector{testing::resolution("c", "10.0.0.3"), testing::resolution("b", "10.0.0.9")};
  take_names(Answer(again), node);
  REQUIRE(node.names->size() == 3);
  CHECK(node.names->at(1) == testing::resolution("b", "10.0.0.9"));
  CHECK(node.names->at(2).name == "a");
  take_names(Unknown{Why::timed_out, "late"}, node);
  CHECK(node.names->size() == 3);
}

}  // namespace
}  // namespace distdoctor::exam
