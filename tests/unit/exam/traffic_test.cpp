#include "exam/traffic.h"

#include "support/builders.h"
#include "support/scripted_fleet.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
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

}  // namespace
}  // namespace distdoctor::exam
