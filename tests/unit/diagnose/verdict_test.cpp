#include <distdoctor/judge.h>

#include "diagnose/diagnose.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace distdoctor::diagnose {
namespace {

using testing::healthy_cluster;

TEST_CASE("a healthy cluster is healthy") {
  const Diagnosis diagnosis = diagnose(healthy_cluster(4), {}, {});
  CHECK(diagnosis.verdict == Verdict::healthy);
  CHECK(diagnosis.exit_code == 0);
  CHECK(diagnosis.causes.empty());
  CHECK(diagnosis.nodes.size() == 4);
  CHECK_FALSE(diagnosis.checks.empty());
}

TEST_CASE("a node that was not reached is one gap, and makes it inconclusive") {
  ClusterFacts cluster = healthy_cluster(3);
  cluster.nodes[1] = {.host = "node1", .not_reached = "ssh: connection refused"};
  const Diagnosis diagnosis = diagnose(cluster, {}, {});
  CHECK(diagnosis.exit_code == 3);
  const auto about_node1 = std::ranges::count_if(diagnosis.gaps, [](const MergedGap& gap) {
    return std::ranges::find(gap.nodes, "node1") != gap.nodes.end();
  });
  CHECK(about_node1 == 1);
}

TEST_CASE("planned traffic without an outcome makes it inconclusive") {
  ClusterFacts cluster = healthy_cluster(2);
  cluster.pairs[0].complete = Unknown{Why::timed_out, "no answer"};
  CHECK(diagnose(cluster, {}, {}).exit_code == 3);
}

constexpr Code kCodes[] = {{.id = "net-odd",
                            .fault_class = FaultClass::mtu_mismatch,
                            .worst = Severity::blocker,
                            .title = "Odd",
                            .causes = {},
                            .page = {}}};
void throws(const Case&, Judge&) {
  throw std::logic_error("oops");
}
void finds(const Case&, Judge& judge) {
  judge.report(
      {.code = "net-odd",
       .severity = Severity::blocker,
       .certainty = Certainty::proved,
       .symptom = Symptom::hang,
       .summary = "odd",
       .evidence = {
           {.node = "node0", .fact = "f", .observed = "1", .expected = "2", .command = "true"}}});
}
constexpr Check kThrows{.title = "Throws", .codes = kCodes, .run = throws};
constexpr Check kFinds{.title = "Finds", .codes = kCodes, .run = finds};
constexpr NamedCheck kChecks[] = {{.name = "run/throws", .check = &kThrows},
                                  {.name = "net/finds", .check = &kFinds}};

TEST_CASE("a check that throws is our bug and stops nobody; modules keep their order") {
  const Judged judged = judge(healthy_cluster(2), {}, kChecks, {});
  REQUIRE(judged.checks.size() == 2);
  CHECK(judged.checks[0].name == "net/finds");
  CHECK(judged.checks[0].result == CheckResult::blocker);
  CHECK(judged.checks[1].result == CheckResult::unknown);
  CHECK(judged.checks[1].detail.find("oops") != std::string::npos);
}

TEST_CASE("selection by area, check and code") {
  const auto count = [](const Selection& selection) {
    const Judged judged = judge(healthy_cluster(2), {}, kChecks, selection);
    return std::pair(judged.checks.size(), judged.findings.size());
  };
  using Counts = std::pair<std::size_t, std::size_t>;
  CHECK(count({.only = {"net"}}) == Counts(1, 1));
  CHECK(count({.only = {"run/throws"}}) == Counts(1, 0));
  CHECK(count({.only = {"net-odd"}}) == Counts(2, 1));
  CHECK(count({.skip = {"net"}}) == Counts(1, 0));
  CHECK(count({.skip = {"net-odd"}}) == Counts(2, 0));
}

TEST_CASE("gaps merge over nodes when fact and reason agree") {
  const Unknown denied{Why::denied, "EPERM"};
  const auto merged = merge_gaps({{"node0", "shm", denied},
                                  {"node1", "shm", denied},
                                  {"node1", "shm", denied},
                                  {"node2", "shm", {Why::timed_out, ""}}});
  REQUIRE(merged.size() == 2);
  CHECK(merged[0].nodes == std::vector<std::string>{"node0", "node1"});
  CHECK(merged[1].nodes == std::vector<std::string>{"node2"});
}

}  // namespace
}  // namespace distdoctor::diagnose
