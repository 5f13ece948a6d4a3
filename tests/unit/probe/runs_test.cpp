// Real ranks of real Gloo over loopback, where it was built.
#include "probe/runs.h"

#include <distdoctor/run_ending.h>

#include "machine/helpers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;

namespace {

bool has_gloo() {
  return std::ranges::any_of(
      machine::helper_programs("gloo_allreduce"),
      [](const std::string& program) { return std::filesystem::exists(program); });
}

RunRequest two_ranks(const std::string& interface) {
  RunRequest request{.id = "0", .backend = RunBackend::gloo, .stage_ms = 20'000};
  for (int rank = 0; rank < 2; ++rank) {
    request.jobs.push_back({.rank = rank,
                            .size = 2,
                            .switches = {{"GLOO_SOCKET_IFNAME", interface}},
                            .sizes = {8, 65536},
                            .most_iterations = 2});
  }
  return request;
}

// Until no rank waits any more.
std::vector<RankRun> to_the_end(probe::Runs& runs, RunRequest request) {
  std::vector<RankRun> ended;
  for (int round = 0; round < 5; ++round) {
    const auto answer = runs.act(request, Deadline::after(60s));
    REQUIRE(answer.has_value());
    ended.insert(ended.end(), answer->ranks.begin(), answer->ranks.end());
    if (answer->blobs.empty()) break;
    request.jobs.clear();
    request.blobs = answer->blobs;
  }
  return ended;
}

}  // namespace

TEST_CASE("two ranks of Gloo meet, verify their sums and are timed" * doctest::skip(!has_gloo())) {
  probe::Runs runs;
  const auto ended = to_the_end(runs, two_ranks("lo"));
  REQUIRE(ended.size() == 2);
  for (const RankRun& rank : ended) {
    CHECK(rank.outcome == RunOutcome::ok);
    CHECK(rank.error == "");
    CHECK(rank.reached == RunStage::done);
    CHECK(rank.interfaces == std::vector<std::string>{"lo"});
    REQUIRE(rank.timings.size() == 2);
    CHECK(rank.timings[1].bytes == 65536);
    CHECK(rank.timings[1].bus_gb_per_s > 0);
  }
}

TEST_CASE("what the library says of an interface that is not there is the rank's error" *
          doctest::skip(!has_gloo())) {
  probe::Runs runs;
  const auto ended = to_the_end(runs, two_ranks("none7"));
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].outcome == RunOutcome::failed);
  CHECK(ended[0].reached == RunStage::loaded);
  CHECK(ended[0].error.find("none7") != std::string::npos);
}

TEST_CASE("a rank that the end of the budget stops was cut, and did not hang" *
          doctest::skip(!has_gloo())) {
  probe::Runs runs;
  const auto answer = runs.act(two_ranks("lo"), Deadline::after({}));
  REQUIRE(answer.has_value());
  REQUIRE(answer->ranks.size() == 2);
  for (const RankRun& rank : answer->ranks) {
    CHECK(rank.outcome == RunOutcome::not_run);
    CHECK(rank.error == kCutByBudget);
  }
}

TEST_CASE("ranks that wait are ended when another one is gone" * doctest::skip(!has_gloo())) {
  probe::Runs runs;
  auto request = two_ranks("lo");
  request.jobs.pop_back();
  const auto begun = runs.act(request, Deadline::after(60s));
  REQUIRE(begun.has_value());
  REQUIRE(begun->blobs.size() == 1);
  const auto ended = runs.act({.id = "0", .over = true}, Deadline::after(5s));
  REQUIRE(ended.has_value());
  REQUIRE(ended->ranks.size() == 1);
  CHECK(ended->ranks[0].outcome == RunOutcome::not_run);
  CHECK_FALSE(runs.act({.id = "0"}, Deadline::after(5s)).has_value());
}

TEST_CASE("a rank of NCCL without a driver tells which library is missing") {
  probe::Runs runs;
  RunRequest request{.id = "0", .jobs = {{.library = "libnone7.so.2", .sizes = {8}}}};
  request.stage_ms = 20'000;
  const auto answer = runs.act(request, Deadline::after(60s));
  REQUIRE(answer.has_value());
  REQUIRE(answer->ranks.size() == 1);
  CHECK(answer->ranks[0].outcome == RunOutcome::failed);
  CHECK(answer->ranks[0].reached == RunStage::none);
  CHECK(answer->ranks[0].error.find("libnone7.so.2") != std::string::npos);
}
