#include "probe/plan_wire.h"

#include "probe/assemble.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using namespace probe;
using Lines = std::vector<std::string>;

Experiment baseline_of(const ClusterFacts& cluster, RunBackend backend) {
  Experiment run{.backend = backend, .outcome = RunOutcome::ok};
  for (const NodeFacts& node : cluster.nodes) {
    for (int device = 0; device < 2; ++device) {
      RankRun& rank = run.ranks.emplace_back();
      rank.place = {.node = node.host, .device = device};
      if (backend == RunBackend::nccl) rank.transports = {"SHM/direct", "NET/Socket/0"};
    }
  }
  return run;
}

ClusterFacts cluster_of(std::size_t size) {
  ClusterFacts cluster = healthy_cluster(size);
  cluster.job.gloo = Use::yes;
  return cluster;
}

// "node0>node1 1,8; node2>node3 1,8"
std::string line(const Round& round) {
  std::string text;
  for (const PlannedPath& path : round.paths) {
    text += (text.empty() ? "" : "; ") + path.from + ">" + path.to;
    for (std::size_t i = 0; i < path.target.streams.size(); ++i) {
      text += (i == 0 ? " " : ",") + std::to_string(path.target.streams[i]);
    }
  }
  return text;
}
Lines lines(const std::vector<Round>& rounds) {
  Lines all;
  for (const Round& round : rounds) all.push_back(line(round));
  return all;
}
std::vector<Round> planned(const ClusterFacts& cluster, RunBackend backend = RunBackend::gloo) {
  return plan_wires(cluster, baseline_of(cluster, backend), {}, 1);
}

TEST_CASE("each way alone, then all at once") {
  CHECK(lines(planned(cluster_of(2))) ==
        Lines{"node0>node1 1,8", "node1>node0 1,8", "node0>node1 1; node1>node0 1"});
  CHECK(lines(planned(cluster_of(3), RunBackend::nccl)) ==
        Lines{"node0>node1 1,8", "node1>node0 1,8", "node1>node2 1,8", "node2>node1 1,8",
              "node2>node0 1,8", "node0>node2 1,8", "node0>node1 8; node1>node2 8; node2>node0 8"});
  CHECK(lines(planned(cluster_of(4))) ==
        Lines{"node0>node1 1,8; node2>node3 1,8", "node1>node0 1,8; node3>node2 1,8",
              "node1>node2 1,8; node3>node0 1,8", "node2>node1 1,8; node0>node3 1,8",
              "node0>node1 1; node1>node2 1; node2>node3 1; node3>node0 1"});
}

TEST_CASE("no node sends twice or receives twice at once, and more nodes take no longer") {
  for (const std::size_t size : {5U, 8U, 9U, 32U}) {
    const auto rounds = planned(cluster_of(size));
    CHECK(rounds.size() == (size % 2 == 0 ? 5 : 7));
    std::set<std::pair<std::string, std::string>> ways;
    for (const Round& round : rounds) {
      std::set<std::string> from;
      std::set<std::string> to;
      for (const PlannedPath& path : round.paths) {
        CHECK(from.insert(path.from).second);
        CHECK(to.insert(path.to).second);
        ways.emplace(path.from, path.to);
      }
      if (&round == &rounds.back()) continue;
      for (const std::string& host : from) CHECK_FALSE(to.contains(host));
    }
    CHECK(ways.size() == 2 * size);
  }
}

TEST_CASE("the address is the one that the data takes, and only the sink's") {
  const auto rounds = planned(cluster_of(2), RunBackend::nccl);
  REQUIRE(rounds.size() == 3);
  const Round& first = rounds.front();
  REQUIRE(first.listens.size() == 1);
  CHECK(first.listens[0].host == "node1");
  CHECK(first.listens[0].request.address == addr(fast(1)));
  CHECK(first.listens[0].request.spread == 0);
  CHECK_FALSE(first.listens[0].request.port.has_value());
  CHECK(first.listens[0].request.hold_ms > first.path_timeout_ms);
  CHECK(first.paths[0].target.destination == addr(fast(1)));
  CHECK(first.paths[0].target.nonce == first.listens[0].request.nonce);
  CHECK(planned(cluster_of(2))[0].paths[0].target.destination == addr(mgmt(1)));
  CHECK(first.paths[0].target.nonce != rounds[1].paths[0].target.nonce);
}

TEST_CASE("as many streams as the job's settings open") {
  World world;
  world.cluster = cluster_of(2);
  world.set("NCCL_SOCKET_NTHREADS", "4");
  world.set("NCCL_NSOCKS_PERTHREAD", "3");
  CHECK(line(planned(world.cluster, RunBackend::nccl).front()) == "node0>node1 1,12");
  CHECK(line(planned(world.cluster, RunBackend::gloo).front()) == "node0>node1 1,8");
}

TEST_CASE("nothing where it would tell nothing") {
  const ClusterFacts cluster = cluster_of(2);
  Experiment run = baseline_of(cluster, RunBackend::nccl);
  for (RankRun& rank : run.ranks) rank.transports = {"NET/IB/0"};
  CHECK(plan_wires(cluster, run, {}, 1).empty());  // RDMA carries the data
  run = baseline_of(cluster, RunBackend::gloo);
  run.outcome = RunOutcome::hung;
  CHECK(plan_wires(cluster, run, {}, 1).empty());
  CHECK(planned(cluster_of(1)).empty());
  ClusterFacts blind = cluster;
  blind.predicted.nodes[1].gloo = Unknown{};
  CHECK(planned(blind).empty());
  ClusterFacts closed = cluster;
  for (PairFacts& pair : closed.pairs) pair.paths.clear();
  CHECK(planned(closed).empty());
  ClusterFacts half = cluster;
  half.pairs.back().paths.clear();
  CHECK(lines(planned(half)) == Lines{"node0>node1 1,8", "node0>node1 1"});
}

void give(ClusterFacts& cluster, const char* from, const char* to, double gb_per_s) {
  for (PairFacts& pair : cluster.pairs) {
    if (pair.from != from || pair.to != to) continue;
    for (Path& path : pair.paths) {
      if (path.purpose == Purpose::gloo) path.wire = std::vector<WireSpeed>{{8, gb_per_s, 0.7}};
    }
  }
}

TEST_CASE("what looks slow is measured once more, alone and by many streams") {
  ClusterFacts cluster = cluster_of(4);
  const auto rounds = planned(cluster);
  for (const Round& round : rounds) {
    for (const PlannedPath& path : round.paths) {
      give(cluster, path.from.c_str(), path.to.c_str(), 1);
    }
  }
  CHECK(confirm_wires(cluster, rounds).empty());
  give(cluster, "node1", "node2", 0.5);
  const auto again = confirm_wires(cluster, rounds);
  CHECK(lines(again) == Lines{"node1>node2 8"});
  REQUIRE(again.size() == 1);
  CHECK(again[0].listens.size() == 1);
}

TEST_CASE("a wire far below what its links claim is measured once more, too") {
  World world;
  world.cluster = cluster_of(2);
  const auto rounds = planned(world.cluster);
  for (const std::size_t i : {0U, 1U}) {
    world.change_link(i, "eth0", [](Link& link) { link.speed_mbps = 10'000; });
  }
  give(world.cluster, "node0", "node1", 0.7);
  give(world.cluster, "node1", "node0", 0.8);
  CHECK(lines(confirm_wires(world.cluster, rounds)) == Lines{"node0>node1 8"});
}

// --- from answers to facts ---

struct Answered {
  ClusterFacts cluster = cluster_of(2);
  std::vector<Round> rounds = planned(cluster);
  RoundAnswers asked = {.listens = {ListenAnswer{.bulk_port = 7}}};

  [[nodiscard]] const Observed<std::vector<WireSpeed>>& wire() const {
    for (const PairFacts& pair : cluster.pairs) {
      if (pair.from == "node0") return pair.paths.back().wire;
    }
    throw std::logic_error("no such pair");
  }
  void take(const Observed<std::vector<WireSpeed>>& speeds) {
    asked.paths = {PathAnswer{.paths = {{.source = {}, .destination = {}, .wire = speeds}}}};
    take_wires(rounds.front(), asked, cluster);
  }
};

TEST_CASE("figures are added to the known path; what fails later takes none away") {
  Answered row;
  const auto requests = wire_requests(row.rounds.front(), row.asked.listens);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].host == "node0");
  CHECK(std::get<PathRequest>(requests[0].request).targets.at(0).bulk_port == 7);
  row.take(Unknown{Why::failed, "a connection broke"});
  CHECK(row.wire().why().text == "a connection broke");
  row.take(std::vector<WireSpeed>{{1, 0.5, 0.7}});
  row.take(std::vector<WireSpeed>{{8, 0.9, 0.7}});
  row.take(Unknown{Why::failed, "a connection broke"});
  CHECK(row.wire() ==
        Observed<std::vector<WireSpeed>>(std::vector<WireSpeed>{{1, 0.5, 0.7}, {8, 0.9, 0.7}}));
}

TEST_CASE("a sink that does not listen, or an agent that is gone, is a reason and no figure") {
  Answered row;
  row.asked.listens = {ListenAnswer{.error = "bind: EADDRNOTAVAIL"}};
  CHECK(wire_requests(row.rounds.front(), row.asked.listens).empty());
  take_wires(row.rounds.front(), row.asked, row.cluster);
  CHECK(row.wire().why().text == "node1 did not listen");
  Answered gone;
  gone.asked.paths = {Unknown{Why::timed_out, "gave no answer"}};
  take_wires(gone.rounds.front(), gone.asked, gone.cluster);
  CHECK(gone.wire().why().text == "node0: gave no answer");
}

}  // namespace
}  // namespace distdoctor::testing
