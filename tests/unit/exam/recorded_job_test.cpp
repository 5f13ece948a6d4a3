#include "exam/recorded_job.h"

#include "support/builders.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::exam {
namespace {

Setting setting(const std::string& value, Source source) {
  return {value, {.source = source}};
}

ClusterFacts recorded() {
  ClusterFacts cluster = testing::healthy_cluster(2);
  cluster.job.settings["MASTER_ADDR"] = setting("node0", Source::option);
  cluster.job.unresolved["MASTER_PORT"] = setting("$(port)", Source::command_line);
  cluster.job.settings.erase("MASTER_PORT");
  cluster.job.rank_settings["RANK"] = setting("1", Source::command_line);
  cluster.job.launches = {{.kind = LauncherKind::torchrun, .nnodes_max = 2}};
  cluster.job.nccl = Use::yes;
  return cluster;
}

struct Row {
  std::string_view name;
  rules::Said said;
  void (*expect)(JobSpec&);  // what changes of the recorded job
};

TEST_CASE("the job of a recording stands, but for what is said today") {
  const std::vector<Row> rows = {
      {"nothing is said", {}, [](JobSpec&) {}},
      {"the analyst's own environment",
       {.environment = {{"MASTER_ADDR", setting("localhost", Source::environment)},
                        {"NCCL_DEBUG", setting("INFO", Source::environment)},
                        {"SLURM_PROCID", setting("0", Source::environment)}}},
       [](JobSpec&) {}},
      {"--master",
       {.options = {{"MASTER_ADDR", setting("node1", Source::option)},
                    {"MASTER_PORT", setting("29501", Source::option)}}},
       [](JobSpec& job) {
         job.settings["MASTER_ADDR"] = setting("node1", Source::option);
         job.settings["MASTER_PORT"] = setting("29501", Source::option);
         job.unresolved.clear();
       }},
      {"a command line",
       {.command = {.launches = {{.kind = LauncherKind::srun}},
                    .settings = {{"NCCL_DEBUG", setting("WARN", Source::command_line)}},
                    .fallbacks = {{"MASTER_ADDR", setting("fallback", Source::command_line)}}}},
       [](JobSpec& job) {
         job.launches = {{.kind = LauncherKind::srun}};
         job.settings["NCCL_DEBUG"] = setting("WARN", Source::command_line);
         job.rank_settings.clear();
       }},
      {"--backend",
       {.options = {{"DISTDOCTOR_BACKEND", setting("gloo", Source::option)}}},
       [](JobSpec& job) {
         job.nccl = Use::no;
         job.gloo = Use::yes;
       }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const ClusterFacts cluster = recorded();
    JobSpec expected = cluster.job;
    row.expect(expected);
    CHECK(job_of_recording(cluster, row.said) == expected);
  }
}

TEST_CASE("facts of single nodes have the job that runs on them") {
  ClusterFacts cluster = testing::healthy_cluster(2);
  cluster.job = {};
  const rules::Said said{.options = {{"MASTER_ADDR", setting("node1", Source::option)}},
                         .environment = {{"MASTER_PORT", setting("1", Source::environment)}}};
  const JobSpec job = job_of_recording(cluster, said);
  CHECK(job.peers == std::vector<std::string>{"node0", "node1"});
  CHECK(job.settings.at("MASTER_ADDR").value == "node1");
  CHECK_FALSE(job.settings.contains("MASTER_PORT"));
}

TEST_CASE("libraries that were looked for elsewhere are not the job's") {
  const rules::Said said{
      .options = {{"LD_LIBRARY_PATH", setting("/ofi", Source::option)},
                  {"NCCL_NET_PLUGIN", setting("/ofi/libnccl-net.so", Source::option)}}};
  ClusterFacts cluster = testing::healthy_cluster(2);
  testing::World::change(cluster.nodes[1].software,
                         [](Software& software) { software.nccl[0].origin = "mapped by pid 7"; });
  const JobSpec then = cluster.job;
  cluster.job = job_of_recording(cluster, said);
  ClusterFacts same = cluster;
  forget_other_libraries(said, cluster.job, same);  // it was said then, too
  CHECK(same == cluster);
  forget_other_libraries({}, then, same);
  CHECK_FALSE(same.nodes[0].software.known());  // /ofi stands in the job, and did not then
  forget_other_libraries(said, then, cluster);
  REQUIRE_FALSE(cluster.nodes[0].software.known());
  CHECK(cluster.nodes[0].software.why().text ==
        "it was looked at without the job's LD_LIBRARY_PATH");
  CHECK(cluster.nodes[1].software.known());
}

}  // namespace
}  // namespace distdoctor::exam
