#include "rules/launch/places.h"

#include "support/builders.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace distdoctor::rules {
namespace {

Setting setting(const std::string& value, Source source) {
  return {value, {.source = source}};
}

// A rank on node0 alone, by whom the job is known.
ClusterFacts with_rank() {
  ClusterFacts cluster = testing::healthy_cluster(2);
  TrainingProcess rank{.pid = 7, .role = ProcessRole::worker, .our_network = true};
  rank.env = std::map<std::string, std::string>{
      {"LD_LIBRARY_PATH", "/rank"}, {"NCCL_NET_PLUGIN", "ofi"}, {"NCCL_DEBUG", "INFO"}};
  cluster.nodes[0].processes = std::vector<TrainingProcess>{rank};
  cluster.nodes[1].processes = std::vector<TrainingProcess>{};
  const Origin origin{.source = Source::process, .node = "node0", .where = "pid 7"};
  cluster.job.settings["NCCL_NET_PLUGIN"] = {"ofi", origin};
  return cluster;
}

TEST_CASE("places: the job's own words, as it wrote them") {
  const Said said{.command = {.settings = {{"LD_PRELOAD", setting("/x.so", Source::command_line)}},
                              .fallbacks = {{"CUDA_HOME", setting("/cuda", Source::command_line)}},
                              .unresolved = {{"LD_LIBRARY_PATH", setting("/a:$LD_LIBRARY_PATH",
                                                                         Source::command_line)}}},
                  .options = {{"NCCL_TOPO_FILE", setting("/t.xml", Source::option)},
                              {"NCCL_DEBUG", setting("INFO", Source::option)}},
                  .environment = {{"NCCL_NET_PLUGIN", setting("own", Source::environment)}}};
  CHECK(places_said(said, resolve_job(said, {"node0"}, {})) ==
        JobPlaces{{"LD_PRELOAD", "/x.so"},
                  {"CUDA_HOME", "${CUDA_HOME:-/cuda}"},
                  {"LD_LIBRARY_PATH", "/a:$LD_LIBRARY_PATH"},
                  {"NCCL_TOPO_FILE", "/t.xml"}});
}

TEST_CASE("places that mpirun -x hands on are those of our environment, or nobody's") {
  Said said{.command = {.settings = {{"LD_LIBRARY_PATH", setting("", Source::command_line)}}},
            .environment = {{"LD_LIBRARY_PATH", setting("/own", Source::environment)}}};
  CHECK(places_said(said, resolve_job(said, {"node0"}, {})) ==
        JobPlaces{{"LD_LIBRARY_PATH", "/own"}});
  said.environment.clear();
  CHECK(places_said(said, resolve_job(said, {"node0"}, {})).empty());
}

TEST_CASE("places of a rank that lives elsewhere, and of our own environment") {
  ClusterFacts cluster = with_rank();
  const JobPlaces sent = {{"LD_PRELOAD", "/x.so"}};
  CHECK(places_in_force(cluster, cluster.nodes[0], sent) == sent);  // its own rank tells better
  JobPlaces expected = {
      {"LD_PRELOAD", "/x.so"}, {"LD_LIBRARY_PATH", "/rank"}, {"NCCL_NET_PLUGIN", "ofi"}};
  CHECK(places_in_force(cluster, cluster.nodes[1], sent) == expected);
  cluster.nodes[1].settings =
      Settings{{"LD_LIBRARY_PATH", setting("/rank", Source::environment)},
               {"NCCL_CONF_FILE", setting("/own.conf", Source::environment)}};
  expected.erase("LD_LIBRARY_PATH");  // it went by that anyway
  CHECK(places_in_force(cluster, cluster.nodes[1], sent) == expected);
  cluster.job.settings = {{"NCCL_TOPO_FILE", setting("/t.xml", Source::environment)}};
  CHECK(places_in_force(cluster, cluster.nodes[1], {}) == JobPlaces{{"NCCL_TOPO_FILE", "/t.xml"}});
}

}  // namespace
}  // namespace distdoctor::rules
