#include <distdoctor/judge.h>
#include <distdoctor/unresolved_master.h>
#include <distdoctor/untested.h>

#include "diagnose/diagnose.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
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

TEST_CASE("a machine under two names is judged once, and told") {
  ClusterFacts cluster = healthy_cluster(3);
  cluster.nodes[2] = cluster.nodes[1];
  cluster.nodes[2].host = "node2";
  cluster.nodes[2].same_as = "node1";
  const Diagnosis diagnosis = diagnose(cluster, {}, {});
  REQUIRE(diagnosis.causes.size() == 1);
  CHECK(diagnosis.causes[0].finding.code == "run-peer-twice");
  CHECK(diagnosis.exit_code == 3);  // who node2 should be was not looked at
}

TEST_CASE("planned traffic without an outcome makes it inconclusive") {
  ClusterFacts cluster = healthy_cluster(2);
  cluster.pairs[0].complete = Unknown{Why::timed_out, "no answer"};
  CHECK(diagnose(cluster, {}, {}).exit_code == 3);
}

TEST_CASE("a meeting point that no resolver could be asked about makes it inconclusive") {
  ClusterFacts cluster = healthy_cluster(2);
  cluster.untried = {{.node = "node1",
                      .what = std::string(kMasterTraffic),
                      .why = {Why::not_collected, std::string(kMasterUnresolved)}}};
  CHECK(diagnose(cluster, {}, {}).exit_code == 3);
  cluster.untried[0].why.text = "only the job's own shell knows MASTER_ADDR";
  CHECK(diagnose(cluster, {}, {}).exit_code == 0);
}

TEST_CASE("collectives that stay open make it inconclusive, and are one gap") {
  ClusterFacts cluster = healthy_cluster(2);
  cluster.untried = {
      {.what = std::string(kCollectives), .why = {Why::failed, "no switch made it work"}}};
  const Diagnosis diagnosis = diagnose(cluster, {}, {});
  CHECK(diagnosis.verdict == Verdict::inconclusive);
  CHECK(diagnosis.exit_code == 3);
  const auto about = std::ranges::count_if(diagnosis.gaps, [](const MergedGap& gap) {
    return gap.why.text == "no switch made it work";
  });
  CHECK(about == 1);
}

std::ptrdiff_t count_of(const Diagnosis& diagnosis, std::string_view area, CheckResult result) {
  return std::ranges::count_if(diagnosis.checks, [&](const CheckLine& line) {
    return line.name.starts_with(area) && line.result == result;
  });
}

TEST_CASE("a check that looked at nothing has not passed") {
  const Diagnosis no_run = diagnose(healthy_cluster(2), {}, {});
  CHECK(count_of(no_run, "collective/", CheckResult::pass) == 0);
  CHECK(count_of(no_run, "collective/", CheckResult::skipped) > 5);
  CHECK(count_of(no_run, "net/", CheckResult::pass) > 5);

  ClusterFacts unreached = healthy_cluster(1);
  unreached.nodes[0] = {.host = "node0", .not_reached = "ssh: connection refused"};
  CHECK(count_of(diagnose(unreached, {}, {}), "", CheckResult::pass) == 0);

  const Diagnosis nothing = diagnose({}, {}, {});
  CHECK(count_of(nothing, "", CheckResult::pass) == 0);
  CHECK(nothing.exit_code == 3);
}

TEST_CASE("what --only and --skip leave between them") {
  CHECK(leaves_any({}, all_checks()));
  CHECK(leaves_any({.only = {"net"}, .skip = {"net/mtu_mismatch"}}, all_checks()));
  CHECK_FALSE(leaves_any({.only = {"net"}, .skip = {"net"}}, all_checks()));
  CHECK_FALSE(
      leaves_any({.only = {"net-mtu-mismatch"}, .skip = {"net-mtu-mismatch"}}, all_checks()));
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

TEST_CASE("what happened to a run decides its exit code; findings win") {
  struct Row {
    std::string_view name;
    bool finds;
    bool throws;
    bool cut_short;
    Verdict verdict;
    int exit_code;
  };
  const std::vector<Row> rows = {
      {"all went well", false, false, false, Verdict::healthy, 0},
      {"a check threw", false, true, false, Verdict::inconclusive, 70},
      {"a check threw and another found", true, true, false, Verdict::problems, 1},
      {"it was cut short", false, false, true, Verdict::inconclusive, 3},
      {"it was cut short and a check found", true, false, true, Verdict::problems, 1},
      {"it was cut short and a check threw", false, true, true, Verdict::inconclusive, 70},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    std::vector<NamedCheck> checks;
    if (row.finds) checks.push_back(kChecks[1]);
    if (row.throws) checks.push_back(kChecks[0]);
    const ClusterFacts cluster = healthy_cluster(2);
    const Diagnosis diagnosis =
        conclude(judge(cluster, {}, checks, {}), cluster, {}, row.cut_short);
    CHECK(diagnosis.verdict == row.verdict);
    CHECK(diagnosis.exit_code == row.exit_code);
    CHECK(diagnosis.interrupted == row.cut_short);
  }
}

TEST_CASE("without test traffic nothing that needs it passes, and one line says why") {
  struct Row {
    std::string_view name;
    void (*change)(ClusterFacts&);
    std::string_view why;
    std::vector<std::string> nodes;
  };
  const std::vector<Row> rows = {
      {"recorded by single nodes",
       [](ClusterFacts& cluster) { cluster.pairs.clear(); },
       "none was sent",
       {}},
      {"--no-probe",
       [](ClusterFacts& cluster) {
         cluster.pairs.clear();
         cluster.untried = {{.what = "test traffic", .why = {.text = "--no-probe"}}};
       },
       "--no-probe",
       {}},
      {"recorded apart from the others",
       [](ClusterFacts& cluster) {
         std::erase_if(cluster.pairs, [](const PairFacts& pair) { return pair.from == "node1"; });
       },
       "none to 2 peers",
       {"node1"}},
      {"a bounded plan",
       [](ClusterFacts& cluster) {
         cluster.pairs.pop_back();
         cluster.untried = {{.what = "pairs", .why = {.text = "5 of 6 pairs were planned"}}};
       },
       "5 of 6 pairs were planned",
       {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    ClusterFacts cluster = healthy_cluster(3);
    row.change(cluster);
    const Diagnosis diagnosis = diagnose(cluster, {}, {});
    CHECK(diagnosis.exit_code == 0);  // what nobody planned to send is an ordinary gap
    const auto gap = std::ranges::find_if(diagnosis.gaps, [&](const MergedGap& item) {
      return item.fact == "test traffic" && item.why.text == row.why;
    });
    REQUIRE(gap != diagnosis.gaps.end());
    CHECK(gap->nodes == row.nodes);
    for (const std::string_view name : {"net/peer_unreachable", "net/ephemeral_ports",
                                        "net/mtu_black_hole", "net/packet_loss", "net/no_route"}) {
      const auto line = std::ranges::find(diagnosis.checks, name, &CheckLine::name);
      REQUIRE(line != diagnosis.checks.end());
      CHECK(line->result == CheckResult::unknown);
    }
  }
}

TEST_CASE("nobody passes for connected to MASTER_PORT who did not try") {
  ClusterFacts cluster = healthy_cluster(3);
  for (PairFacts& pair : cluster.pairs) {
    if (pair.from != "node1") continue;
    std::erase_if(pair.dials, [](const Dial& dial) { return dial.purpose == Purpose::master; });
  }
  const Diagnosis diagnosis = diagnose(cluster, {}, {.only = {"rendezvous/port_reachable"}});
  REQUIRE(diagnosis.checks.size() == 1);
  CHECK(diagnosis.checks[0].result == CheckResult::unknown);
  CHECK(diagnosis.checks[0].detail == "test traffic of node1: none to MASTER_PORT");
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
