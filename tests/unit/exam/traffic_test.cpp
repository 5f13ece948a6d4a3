#include "exam/traffic.h"

#include "support/builders.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace distdoctor::exam {
namespace {

// A fake: node1 is silent, the others do nothing and say so.
class FakeFleet final : public fleet::Fleet {
 public:
  [[nodiscard]] std::vector<fleet::PeerState> peers() const override { return {}; }
  std::vector<Observed<Answer>> ask(std::span<const fleet::Ask> asks, Deadline by) override {
    std::vector<Observed<Answer>> answers;
    for (const fleet::Ask& row : asks) {
      asked.push_back(row.host);
      ends.push_back(by);
      const bool silent = row.host == "node1";
      answers.emplace_back(Unknown{silent ? Why::timed_out : Why::failed,
                                   silent ? "no answer within 5 s" : "I would rather not"});
    }
    return answers;
  }
  void interrupt() override {}
  void close() override {}

  std::vector<std::string> asked;
  std::vector<Deadline> ends;
};

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
  FakeFleet fleet;
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
  CHECK(std::ranges::count(sent.fleet.asked, "node1") == 1);
  CHECK(std::ranges::count(sent.fleet.asked, "node0") > 3);
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

}  // namespace
}  // namespace distdoctor::exam
