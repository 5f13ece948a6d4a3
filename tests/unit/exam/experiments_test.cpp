// How an experiment is acted out.
#include "exam/experiments.h"

#include <distdoctor/run_ending.h>

#include "support/builders.h"
#include "support/scripted_fleet.h"

#include <doctest/doctest.h>

#include <chrono>
#include <utility>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;

namespace {

using testing::ScriptedFleet;

// A rank on node1 and one on node2.
Experiment two_ranks(RunBackend backend, std::map<std::string, std::string> switches = {}) {
  Experiment run{.what = "P2P off", .backend = backend, .switches = std::move(switches)};
  run.sizes = {8};
  run.ranks = {{.place = {.node = "node1"}}, {.place = {.node = "node2"}}};
  return run;
}

RankRun ended(int rank, RunOutcome outcome = RunOutcome::ok) {
  return {.rank = rank, .reached = RunStage::done, .outcome = outcome};
}

int rank_of(const fleet::Ask& ask) {
  return ask.host == "node1" ? 0 : 1;
}

Experiment acted(Experiment run, ScriptedFleet& fleet, const ClusterFacts& cluster = {}) {
  exam::run_experiment(run, cluster, fleet, {.deadline = Deadline::after(10s)});
  return run;
}

// Both ranks meet once and end; of NCCL their logs have these lines.
ScriptedFleet healthy(const std::vector<std::string>& lines = {}) {
  return ScriptedFleet([lines](std::size_t round, const fleet::Ask& ask) -> Observed<Answer> {
    const int rank = rank_of(ask);
    if (round == 0) return Answer(RunAnswer{.blobs = {{.rank = rank, .bytes = "0a"}}});
    return Answer(RunAnswer{.ranks = {ended(rank)}, .logs = {{.rank = rank, .lines = lines}}});
  });
}

}  // namespace

TEST_CASE("what all ranks published goes to every node, and the worst of them is the outcome") {
  auto fleet = healthy();
  const auto run = acted(two_ranks(RunBackend::gloo), fleet);
  CHECK(run.outcome == RunOutcome::ok);
  CHECK(run.ranks[1].place.node == "node2");
  REQUIRE(fleet.rounds.size() == 2);
  CHECK(fleet.asked(0, 1).jobs.at(0).size == 2);
  CHECK(fleet.asked(1, 0).blobs.size() == 2);
  CHECK_FALSE(fleet.asked(1, 0).over);
}

TEST_CASE("when a rank is gone, those that wait for it are ended") {
  ScriptedFleet fleet([](std::size_t round, const fleet::Ask& ask) -> Observed<Answer> {
    const int rank = rank_of(ask);
    if (rank == 0) return Answer(RunAnswer{.ranks = {ended(0, RunOutcome::failed)}});
    if (round == 0) return Answer(RunAnswer{.blobs = {{.rank = 1, .bytes = "0a"}}});
    return Answer(RunAnswer{.ranks = {ended(1, RunOutcome::not_run)}});
  });
  const auto run = acted(two_ranks(RunBackend::gloo), fleet);
  CHECK(run.outcome == RunOutcome::failed);
  REQUIRE(fleet.rounds.size() == 2);
  CHECK(fleet.asked(1).over);
  CHECK(fleet.rounds[1].size() == 1);
}

TEST_CASE("the outcome is that of the rank that began it") {
  ScriptedFleet fleet([](std::size_t round, const fleet::Ask& ask) -> Observed<Answer> {
    const int rank = rank_of(ask);
    if (round == 0) return Answer(RunAnswer{.blobs = {{.rank = rank, .bytes = "0a"}}});
    RankRun run = ended(rank, rank == 0 ? RunOutcome::failed : RunOutcome::hung);
    run.error = rank == 0 ? "pair.cc:534: Connection closed by peer [10.0.0.2]" : "gave up";
    return Answer(RunAnswer{.ranks = {run}});
  });
  const auto run = acted(two_ranks(RunBackend::gloo), fleet);
  CHECK(run.outcome == RunOutcome::hung);
  REQUIRE(first_cause(run) != nullptr);
  CHECK(first_cause(run)->rank == 1);
}

TEST_CASE("one that was told to end is not the cause, however little it did") {
  Experiment run = two_ranks(RunBackend::gloo);
  run.ranks[0] = {.rank = 0, .reached = RunStage::loaded, .outcome = RunOutcome::failed};
  run.ranks[0].error = "no such interface";
  run.ranks[1].error = kAnotherHadEnded;
  REQUIRE(first_cause(run) != nullptr);
  CHECK(first_cause(run)->error == "no such interface");
  std::swap(run.ranks[0], run.ranks[1]);
  CHECK(first_cause(run)->error == "no such interface");
  run.ranks = {ended(0), ended(1)};
  CHECK(first_cause(run) == nullptr);
}

TEST_CASE("a lost agent makes it no run, whatever the other ranks then did") {
  ScriptedFleet fleet([](std::size_t round, const fleet::Ask& ask) -> Observed<Answer> {
    const int rank = rank_of(ask);
    if (round == 0) return Answer(RunAnswer{.blobs = {{.rank = rank, .bytes = "0a"}}});
    if (rank == 1) return Unknown{Why::failed, "the channel closed"};
    return Answer(RunAnswer{.ranks = {ended(0, RunOutcome::hung)}});
  });
  const auto run = acted(two_ranks(RunBackend::gloo), fleet);
  CHECK(run.outcome == RunOutcome::not_run);
  CHECK(run.ranks[1].error == "the channel closed");
}

TEST_CASE("ranks that meet for ever are ended, too") {
  ScriptedFleet fleet([](std::size_t, const fleet::Ask& ask) -> Observed<Answer> {
    return Answer(RunAnswer{.blobs = {{.rank = rank_of(ask), .bytes = "0a"}}});
  });
  CHECK(acted(two_ranks(RunBackend::gloo), fleet).outcome == RunOutcome::not_run);
  CHECK(fleet.asked(fleet.rounds.size() - 1).over);
}

TEST_CASE("a switch counts only if the rank's own log shows it in force") {
  const std::map<std::string, std::string> switches = {{"NCCL_NET", "Socket"},
                                                       {"NCCL_P2P_DISABLE", "1"}};
  using Names = std::vector<std::string>;
  auto shown = healthy({"n:1:1 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.",
                        "n:1:1 [0] NCCL INFO Using network Socket"});
  CHECK(acted(two_ranks(RunBackend::nccl, switches), shown).unheeded.empty());
  auto other = healthy({"n:1:1 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 0.",
                        "n:1:1 [0] NCCL INFO Using network IB"});
  CHECK(acted(two_ranks(RunBackend::nccl, switches), other).unheeded ==
        Names{"NCCL_NET", "NCCL_P2P_DISABLE"});
}

TEST_CASE("a rank has the job's settings, but neither its files nor its ports") {
  ClusterFacts cluster = testing::healthy_cluster(2);
  cluster.predicted.nodes = {{.node = "node1"}};
  for (const char* name : {"NCCL_IB_HCA", "NCCL_COMM_ID", "NCCL_TOPO_DUMP_FILE", "HOME"}) {
    cluster.predicted.nodes[0].settings[name].value = "theirs";
  }
  auto fleet = healthy();
  acted(two_ranks(RunBackend::nccl, {{"NCCL_NET", "Socket"}}), fleet, cluster);
  const auto& switches = fleet.asked(0).jobs.at(0).switches;
  CHECK(switches.at("NCCL_IB_HCA") == "theirs");
  CHECK(switches.at("NCCL_NET") == "Socket");
  CHECK(switches.at("NCCL_COMM_ID").empty());
  CHECK(switches.at("NCCL_TOPO_DUMP_FILE").empty());
  CHECK_FALSE(switches.contains("HOME"));
}

TEST_CASE("as root no library is loaded that a user's process leads to") {
  ClusterFacts cluster = testing::healthy_cluster(2);
  NodeFacts& node = cluster.nodes[0];
  node.nccl_library = NcclLibrary{.path = "/users/ann/libnccl.so.2", .origin = "mapped by pid 7"};
  const auto library_as = [&](int uid) {
    node.identity = Identity{.uid = uid};
    auto fleet = healthy();
    Experiment run = two_ranks(RunBackend::nccl);
    run.ranks[0].place.node = node.host;
    acted(run, fleet, cluster);
    return fleet.asked(0).jobs.at(0).library;
  };
  CHECK(library_as(0).empty());
  CHECK(library_as(1000) == "/users/ann/libnccl.so.2");
}
