#include "exam/traffic.h"

#include "probe/plan_wire.h"
#include "support/builders.h"
#include "support/scripted_fleet.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <variant>
#include <vector>

namespace distdoctor::exam {
namespace {

// node1 is silent, the others do nothing and say so.
Observed<Answer> unwilling(std::size_t /*round*/, const fleet::Ask& ask) {
  if (ask.host == "node1") return Unknown{Why::timed_out, "no answer within 5 s"};
  return Unknown{Why::failed, "I would rather not"};
}

struct Sent {
  explicit Sent(std::chrono::seconds budget = std::chrono::seconds(600),
                const std::atomic<bool>* interrupted = nullptr)
      : deadline(Deadline::after(budget)) {
    cluster.pairs.clear();
    const auto plan = probe::make_plan(cluster, {}, 1);
    send_traffic(
        plan, fleet,
        {.deadline = deadline, .timeout = std::chrono::seconds(5), .interrupted = interrupted},
        cluster);
  }
  Deadline deadline;
  ClusterFacts cluster = testing::healthy_cluster(3);
  testing::ScriptedFleet fleet{unwilling};

  [[nodiscard]] std::size_t asks_of(const std::string& host) const {
    std::size_t count = 0;
    for (const auto& round : fleet.rounds) {
      count += static_cast<std::size_t>(std::ranges::count(round, host, &fleet::Ask::host));
    }
    return count;
  }
};

bool all_incomplete(const ClusterFacts& cluster, const std::string& why) {
  return cluster.pairs.size() >= 6 &&
         std::ranges::all_of(cluster.pairs, [&](const PairFacts& pair) {
           return !pair.complete.known() && pair.complete.why().text == why;
         });
}

TEST_CASE(
    "a node that does not answer one step is not asked again, and no step takes all the time") {
  const Sent sent;
  CHECK(sent.asks_of("node1") == 1);
  CHECK(sent.asks_of("node0") > 3);
  for (const Deadline end : sent.fleet.ends) CHECK(end < sent.deadline);
  CHECK(sent.cluster.nodes[1].duplicates.why().text == "node1: no answer within 5 s");
  const auto pair = std::ranges::find_if(sent.cluster.pairs, [](const PairFacts& row) {
    return row.from == "node0" && row.to == "node1";
  });
  REQUIRE(pair != sent.cluster.pairs.end());
  CHECK(pair->complete.why().text == "node1: gave no answer before");
}

TEST_CASE("Ctrl-C and an ended budget leave every planned pair incomplete, with that reason") {
  const std::atomic<bool> yes = true;
  CHECK(all_incomplete(Sent(std::chrono::seconds(600), &yes).cluster,
                       "interrupted before it was tried"));
  CHECK(all_incomplete(Sent(std::chrono::seconds(0)).cluster,
                       "the budget was used up before it was tried"));
}

// A fake: every sink listens, every wire carries the same, except what node1 sends.
class FakeWires final : public fleet::Fleet {
 public:
  [[nodiscard]] std::vector<fleet::PeerState> peers() const override { return {}; }
  std::vector<Observed<Answer>> ask(std::span<const fleet::Ask> asks, Deadline /*by*/) override {
    std::vector<Observed<Answer>> answers;
    for (const fleet::Ask& row : asks) answers.push_back(answer(row));
    return answers;
  }
  void interrupt() override {}
  void close() override {}

  int measured = 0;

 private:
  Answer answer(const fleet::Ask& row) {
    if (std::holds_alternative<ListenRequest>(row.request)) return ListenAnswer{.bulk_port = 7};
    const auto* request = std::get_if<PathRequest>(&row.request);
    if (request == nullptr) return ReportAnswer{};
    PathAnswer paths;
    std::vector<WireSpeed> speeds;
    for (const int streams : request->targets.at(0).streams) {
      speeds.push_back({streams, row.host == "node1" ? 0.1 : 1, 0.7});
    }
    paths.paths.push_back({.source = {}, .destination = {}, .wire = speeds});
    ++measured;
    return paths;
  }
};

struct Measured {
  explicit Measured(const std::atomic<bool>* interrupted = nullptr) {
    Experiment run{.backend = RunBackend::gloo, .outcome = RunOutcome::ok};
    for (const NodeFacts& node : cluster.nodes) {
      run.ranks.emplace_back().place = {.node = node.host};
    }
    measure_wires(probe::plan_wires(cluster, run, {}, 1), fleet,
                  {.deadline = Deadline::after(std::chrono::seconds(600)),
                   .timeout = std::chrono::seconds(5),
                   .interrupted = interrupted},
                  cluster);
  }
  [[nodiscard]] std::size_t figures(const std::string& from, const std::string& to) const {
    for (const PairFacts& pair : cluster.pairs) {
      if (pair.from != from || pair.to != to) continue;
      const auto& wire = pair.paths.back().wire;  // Gloo's
      return wire.known() ? wire->size() : 0;
    }
    return 0;
  }
  ClusterFacts cluster = testing::healthy_cluster(3);
  FakeWires fleet;
};

TEST_CASE("every wire is measured alone and beside the others, a slow one once more") {
  const Measured wires;
  CHECK(wires.fleet.measured == 6 + 3 + 2);
  CHECK(wires.figures("node0", "node1") == 3);
  CHECK(wires.figures("node1", "node2") == 4);
  CHECK(wires.figures("node1", "node0") == 3);
  CHECK(wires.figures("node0", "node2") == 2);
}

TEST_CASE("after Ctrl-C no wire is filled") {
  const std::atomic<bool> yes = true;
  CHECK(Measured(&yes).fleet.measured == 0);
}

}  // namespace
}  // namespace distdoctor::exam
