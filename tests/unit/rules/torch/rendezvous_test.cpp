#include "rules/torch/rendezvous.h"

#include "support/links.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

struct Row {
  std::string name;
  std::vector<Launch> launches;
  std::vector<std::string> settings;  // of the environment
  std::string expected;               // "host port", "endpoint host port" or "none"
  Source source = Source::environment;
};

Launch torchrun(int nodes) {
  return {.kind = LauncherKind::torchrun, .nnodes_min = nodes, .nnodes_max = nodes};
}
Launch torchrun_at(const std::string& addr, const std::string& port) {
  Launch launch = torchrun(2);
  launch.master_addr = addr;
  launch.master_port = port;
  return launch;
}
Launch c10d(const std::string& endpoint) {
  Launch launch = torchrun(2);
  launch.rdzv_backend = "c10d";
  launch.rdzv_endpoint = endpoint;
  return launch;
}
Launch changed(Launch launch, void (*change)(Launch&)) {
  change(launch);
  return launch;
}
Launch of_kind(LauncherKind kind) {
  return {.kind = kind};
}

const std::vector<std::string> kEnv = {"MASTER_ADDR=node9", "MASTER_PORT=4000"};

const std::vector<Row> kRows = {
    {"variables", {}, kEnv, "node9 4000"},
    {"no variables", {}, {}, "none"},
    {"no address", {}, {"MASTER_PORT=4000"}, "none"},
    {"an empty address", {}, {"MASTER_ADDR=", "MASTER_PORT=4000"}, "none"},
    {"no port", {}, {"MASTER_ADDR=node9"}, "node9 -"},
    {"a port that is none", {}, {"MASTER_ADDR=node9", "MASTER_PORT=70000"}, "node9 -"},
    {"srun and python leave them",
     {of_kind(LauncherKind::srun), of_kind(LauncherKind::python)},
     kEnv,
     "node9 4000"},
    {"torchrun's own default beats them", {torchrun(2)}, kEnv, "127.0.0.1 29500"},
    {"torchrun's default, but --master was said",
     {torchrun(2)},
     kEnv,
     "node9 4000",
     Source::option},
    {"--master_addr", {torchrun_at("node0", "")}, kEnv, "node0 29500"},
    {"--master_addr and port", {torchrun_at("node0", "1234")}, kEnv, "node0 1234"},
    {"--master_addr=$MASTER_ADDR",
     {torchrun_at("$MASTER_ADDR", "${MASTER_PORT}")},
     kEnv,
     "node9 4000"},
    {"only the job's shell knows", {torchrun_at("$(hostname)", "")}, kEnv, "none"},
    {"backquotes", {torchrun_at("`hostname`", "")}, kEnv, "none"},
    {"unknown variable", {torchrun_at("$HEAD", "")}, kEnv, "none"},
    {"unknown variable, but --master was said",
     {torchrun_at("$HEAD", "")},
     kEnv,
     "node9 4000",
     Source::option},
    {"srun torchrun", {of_kind(LauncherKind::srun), torchrun_at("node0", "")}, {}, "node0 29500"},
    {"c10d", {c10d("node0:1234")}, kEnv, "endpoint node0 1234"},
    {"c10d without port", {c10d("node0")}, kEnv, "endpoint node0 29400"},
    {"c10d from variables", {c10d("$MASTER_ADDR:$MASTER_PORT")}, kEnv, "endpoint node9 4000"},
    {"c10d unknown", {c10d("$HEAD:29400")}, kEnv, "none"},
    {"c10d that torchrun refuses", {c10d("node0:port")}, kEnv, "none"},
    {"etcd is no rank's",
     {changed(c10d("etcd0:2379"), [](Launch& l) { l.rdzv_backend = "etcd-v2"; })},
     kEnv,
     "none"},
    {"static with an endpoint",
     {changed(c10d("node0:1234"), [](Launch& l) { l.rdzv_backend = "static"; })},
     {},
     "node0 1234"},
    {"static, the endpoint beats the address",
     {changed(c10d("node0:1234"),
              [](Launch& l) {
                l.rdzv_backend = "static";
                l.master_addr = "node1";
              })},
     {},
     "node0 1234"},
    {"a torchrun for one node says nothing", {torchrun(1)}, kEnv, "node9 4000"},
    {"nor does one with torch's documented endpoint for one node",
     {changed(c10d("localhost:0"), [](Launch& l) { l.nnodes_min = l.nnodes_max = 1; })},
     {},
     "none"},
    {"one for a single node beside one for two",
     {changed(c10d("localhost:0"), [](Launch& l) { l.nnodes_min = l.nnodes_max = 1; }),
      c10d("node0:1234")},
     {},
     "endpoint node0 1234"},
    {"a number of nodes that only the job's shell knows",
     {changed(c10d("node0:1234"), [](Launch& l) { l.nnodes_min = l.nnodes_max = {}; })},
     {},
     "endpoint node0 1234"},
    {"standalone says nothing of several nodes",
     {changed(torchrun(1), [](Launch& l) { l.standalone = true; })},
     {},
     "none"},
    {"accelerate",
     {changed(of_kind(LauncherKind::accelerate), [](Launch& l) { l.master_addr = "node0"; })},
     kEnv,
     "node0 29500"},
    {"accelerate by its config file", {of_kind(LauncherKind::accelerate)}, kEnv, "none"},
    {"accelerate over c10d",
     {changed(of_kind(LauncherKind::accelerate),
              [](Launch& l) {
                l.rdzv_backend = "c10d";
                l.master_addr = "node0";
                l.master_port = "1234";
              })},
     {},
     "endpoint node0 1234"},
    {"deepspeed",
     {changed(of_kind(LauncherKind::deepspeed), [](Launch& l) { l.master_addr = "node0"; })},
     {},
     "node0 29500"},
};

std::string words(const std::optional<rules::Rendezvous>& found) {
  if (!found) return "none";
  return (found->endpoint ? "endpoint " : "") + found->host + " " +
         (found->port ? std::to_string(*found->port) : "-");
}

JobSpec job_of(const Row& row) {
  JobSpec job{.peers = {"node0", "node1"}, .settings = settings_from(row.settings)};
  for (auto& [name, setting] : job.settings) setting.origin.source = row.source;
  job.launches = row.launches;
  return job;
}

}  // namespace

TEST_CASE("rendezvous_of") {
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    CHECK(words(rules::rendezvous_of(job_of(row))) == row.expected);
  }
}

TEST_CASE("rendezvous_of: one node alone") {
  JobSpec job{.peers = {"node0"}, .launches = {torchrun(1)}};
  CHECK(words(rules::rendezvous_of(job)) == "127.0.0.1 29500");
  job.launches.front().standalone = true;
  CHECK(words(rules::rendezvous_of(job)) == "endpoint localhost 29400");
}

TEST_CASE("rendezvous_of: a node's own launch decides there") {
  Launch own = c10d("node1:1");
  own.origin.node = "node1";
  own.rdzv_is_host = true;
  const JobSpec job{.peers = {"node0", "node1"}, .launches = {own, c10d("node0:1")}};
  CHECK(words(rules::rendezvous_of(job)) == "endpoint node0 1");
  CHECK(words(rules::rendezvous_of(job, "node1")) == "endpoint node1 1");
  CHECK(rules::rendezvous_of(job, "node1")->is_host == true);
  CHECK_FALSE(rules::rendezvous_of(job)->is_host.has_value());
}
