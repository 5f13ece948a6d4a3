#include "checks/rendezvous/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// Every torchrun got this endpoint; who claims it is said node by node.
void endpoint(World& w, const std::string& host, const std::string& claims) {
  set_master(w, host);
  w.cluster.predicted.master->endpoint = true;
  w.cluster.predicted.master->port = std::uint16_t{29400};
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (claims[i] == '?') {
      w.prediction(i).hosts_endpoint = Unknown{.kind = Why::timed_out, .text = "getent: 2 s"};
    } else {
      w.prediction(i).hosts_endpoint = claims[i] == 'y';
    }
  }
}

std::string row(int node, const char* host, bool yes) {
  const std::string name = "node" + std::to_string(node);
  return name + " torchrun.endpoint: " + name + " takes " + host +
         (yes ? " for itself, not one host only; " : " for another machine, not one host; ") +
         "hostname; getent ahosts " + host + "; ip -br addr";
}
Verdict unclaimed(const char* host) {
  return {.code = "rendezvous-endpoint-unclaimed",
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::hang,
          .says = "no node takes --rdzv_endpoint",
          .evidence = {row(0, host, false), row(1, host, false), row(2, host, false),
                       row(3, host, false)},
          .fixes = {"*: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy: a job by env://", [](World&) {}},
    {"healthy: one node hosts", [](World& w) { endpoint(w, "node0", "ynnn"); }},
    {"nobody does", [](World& w) { endpoint(w, "head", "nnnn"); }, {unclaimed("head")}},
    {"near miss: somebody beside the peers hosts it",
     [](World& w) {
       endpoint(w, "head", "nnnn");
       dial_master(w, 0, "", "10.10.0.77", Outcome::ok).ours = false;
     }},
    {"near miss: the one that nobody could ask may host it",
     [](World& w) { endpoint(w, "head", "nn?n"); },
     {},
     {"node2 torchrun.endpoint"}},
    {"two do, which a third cannot change",
     [](World& w) { endpoint(w, "localhost", "y?yn"); },
     {{.code = "rendezvous-endpoint-claimed-twice",
       .severity = blocker,
       .certainty = proved,
       .symptom = Symptom::hang,
       .says = "node0, node2 each take --rdzv_endpoint localhost for themselves",
       .blamed = {"node0", "node2"},
       .evidence = {row(0, "localhost", true), row(2, "localhost", true)},
       .fixes = {"*: (manual)"}}},
     {"node1 torchrun.endpoint"}},
    {"near miss: no endpoint, so nobody claims it",
     [](World& w) {
       for (const std::size_t i : {0U, 1U, 2U, 3U}) w.prediction(i).hosts_endpoint = false;
     }},
    {"near miss: jobs of one node each, with torch's documented endpoint",
     [](World& w) {
       endpoint(w, "localhost", "yynn");
       for (const std::size_t i : {0U, 1U}) run_one_node_job(w, i);
     }},
    {"near miss: only the job's shell knows it", [](World& w) { endpoint(w, "$HEAD", "nnnn"); }},
    {"near miss: one node alone",
     [](World& w) {
       endpoint(w, "head", "n");
       w.cluster.nodes.resize(1);
     }},
};

TEST_CASE("rendezvous/c10d_endpoint") {
  run_cases("rendezvous/c10d_endpoint", cases);
}

TEST_CASE("the endpoint that is proposed is an address of the node that the old one led to") {
  World world;
  endpoint(world, "head", "nnnn");
  world.cluster.predicted.master->node = "node2";
  const Check& check = find_check("rendezvous/c10d_endpoint");
  Judge judge(check.codes);
  check.run({.cluster = world.cluster, .expect = world.expect}, judge);
  REQUIRE(judge.findings().size() == 1);
  CHECK(judge.findings()[0].fix[0].text.find("--rdzv_endpoint 10.10.0.12:29400 on every node") !=
        std::string::npos);
}

}  // namespace
}  // namespace distdoctor::testing
