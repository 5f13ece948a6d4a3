// Whatever the runs answer, in whatever order: the planner ends, within its runs, and says nothing
// that two runs, and their repetition, do not show.
#include "bisect/bisect.h"
#include "bisect/series.h"
#include "support/simulated_cluster.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace distdoctor::testing {
namespace {

using bisect::Answer;

constexpr SimulatedShape kShapes[] = {{.nodes = 1, .gpus = 2},
                                      {.nodes = 1, .gpus = 8, .nvswitch = true},
                                      {.nodes = 2, .gpus = 4, .hcas = 4},
                                      {.nodes = 2, .gpus = 1},
                                      {.nodes = 3, .gpus = 2, .hcas = 1, .plugin = true},
                                      {.nodes = 12, .gpus = 1, .hcas = 1}};

class Dice {
 public:
  explicit Dice(unsigned seed) : generator_(seed) {}
  int roll(int below) { return std::uniform_int_distribution(0, below - 1)(generator_); }

 private:
  std::mt19937 generator_;
};

constexpr const char* kErrors[] = {"", "", "no space in /dev/shm", "NET/IB : error 12", "NVLS"};
constexpr const char* kTransports[] = {"P2P/CUMEM", "SHM/direct", "NET/IB/0", "NET/Socket/0"};

void answer_by_chance(Experiment& run, Dice& dice, int health) {
  const bool ok = dice.roll(100) < health;
  run.outcome = ok ? RunOutcome::ok : static_cast<RunOutcome>(dice.roll(6));
  if (dice.roll(12) == 0 && !run.switches.empty()) {
    run.unheeded = {run.switches.begin()->first};
  }
  const double speed = dice.roll(3) == 0 ? 0.5 : 20 + dice.roll(200);
  for (RankRun& rank : run.ranks) {
    rank.outcome = run.outcome;
    rank.reached = ok ? RunStage::done : static_cast<RunStage>(dice.roll(8));
    rank.error = kErrors[dice.roll(5)];
    if (dice.roll(3) > 0) rank.transports = {kTransports[dice.roll(4)]};
    if (dice.roll(5) == 0) continue;
    rank.timings = {{.bytes = std::int64_t{1} << (dice.roll(4) == 0 ? 20 : 28),
                     .seconds = 1,
                     .own_seconds = dice.roll(4) == 0 ? 0.9 : 0.1,
                     .bus_gb_per_s = speed}};
  }
}

bool same_setup(const Experiment& a, const Experiment& b) {
  return a.switches == b.switches &&
         std::ranges::equal(a.ranks, b.ranks, {}, &RankRun::place, &RankRun::place);
}

int repetitions(const ClusterFacts& facts, int number) {
  const Experiment& run = facts.experiments.at(static_cast<std::size_t>(number));
  return static_cast<int>(std::ranges::count_if(
      facts.experiments, [&](const Experiment& other) { return same_setup(run, other); }));
}

const Experiment& proof(const ClusterFacts& facts, const Isolation& found, std::size_t i) {
  return facts.experiments.at(static_cast<std::size_t>(found.proof.at(i)));
}

void check_proof(const ClusterFacts& facts, const Isolation& found) {
  REQUIRE(found.proof.size() >= 2);
  const Experiment& sick = proof(facts, found, 0);
  const Experiment& other = proof(facts, found, 1);
  CHECK(repetitions(facts, found.proof[0]) >= 2);
  CHECK(repetitions(facts, found.proof[1]) >= 2);
  if (found.ailment != Ailment::slow) CHECK(bisect::works(sick) == Answer::sick);
  if (found.layer == Layer::setup || found.layer == Layer::none) {
    CHECK(same_setup(sick, other));
    return;
  }
  CHECK(bisect::works(other) == Answer::sound);
  CHECK_FALSE(same_setup(sick, other));
  if (found.ailment == Ailment::slow) {
    CHECK(bisect::speed_of(other).value_or(0) > bisect::speed_of(sick).value_or(0));
  }
}

void play(unsigned seed) {
  Dice dice(seed);
  SimulatedCluster cluster(kShapes[dice.roll(6)], {}, seed);
  cluster.options.max_runs = 4 + dice.roll(50);
  const int health = dice.roll(100);
  CAPTURE(seed);
  while (true) {
    bisect::Step step = bisect::next(cluster.facts, cluster.options);
    CHECK(step == bisect::next(cluster.facts, cluster.options));
    if (const auto* found = std::get_if<Isolation>(&step)) check_proof(cluster.facts, *found);
    auto* planned = std::get_if<Experiment>(&step);
    if (planned == nullptr) return;
    REQUIRE(planned->number == static_cast<int>(cluster.runs()));
    REQUIRE(cluster.runs() < static_cast<std::size_t>(cluster.options.max_runs));
    REQUIRE_FALSE(planned->ranks.empty());
    answer_by_chance(*planned, dice, health);
    cluster.facts.experiments.push_back(std::move(*planned));
  }
}

TEST_CASE("any answers: bounded, and no verdict without its proof") {
  for (unsigned seed = 0; seed < 3000; ++seed) play(seed);
}

}  // namespace
}  // namespace distdoctor::testing
