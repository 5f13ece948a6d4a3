// The runs so far, as answers: a question that none of them answers is the next run.
#pragma once

#include "bisect/bisect.h"

#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor::bisect {

using Switches = std::map<std::string, std::string>;

// What tells one run from another.
struct Setup {
  std::string what = {};
  Switches switches = {};
  std::vector<RunPlace> places = {};
};

// none: the run proves nothing; it did not start, or a switch was not in force, or what was asked
// for twice went wrong but once.
enum class Answer : std::uint8_t { none, sound, sick };

struct Reading {
  Answer answer = Answer::none;
  std::vector<int> numbers = {};  // of the runs behind it; the first one that decides in front
  double gb_per_s = 0;            // of these, the best one

  [[nodiscard]] bool sick() const { return answer == Answer::sick; }
  [[nodiscard]] bool sound() const { return answer == Answer::sound; }
};

// Why there is no answer yet.
struct Wanted {
  std::optional<Experiment> experiment = {};  // to be run; none: there may be no more runs
};
template <class T>
using Known = std::expected<T, Wanted>;

using Judgement = std::function<Answer(const Experiment&)>;

class Series {
 public:
  Series(const ClusterFacts& cluster, const Options& options, Judgement judgement);

  // After as many runs as it takes: one, `at_least`, or, where the same run went both ways before,
  // so many that all of them being sound is no luck. One sick run is enough for sick, but where
  // several are asked for a verdict hangs on it, and a single one of them may be chance: none.
  // Runs of which somebody killed a rank from outside do not count; after two of them: none.
  Known<Reading> ask(const Setup& setup, int at_least = 1);

  // As the ranks are numbered.
  [[nodiscard]] std::vector<RunPlace> in_order(const std::vector<RunPlace>& places) const;

  // The same run went both ways.
  [[nodiscard]] bool flaky() const { return flaky_; }
  // It did, and so seldom that no number of runs within reason tells a cure from luck.
  [[nodiscard]] bool beyond_proof() const { return flaky_ && !provable_; }

 private:
  [[nodiscard]] std::vector<const Experiment*> runs_of(const Setup& setup) const;
  [[nodiscard]] Reading read(const std::vector<const Experiment*>& runs, int& sick_runs) const;
  [[nodiscard]] Wanted want(const Setup& setup) const;
  [[nodiscard]] int enough(const Setup& setup, int at_least, int sick_runs) const;
  [[nodiscard]] std::vector<int> given_up(const Setup& setup) const;
  void look_for_doubt();
  void expect_luck(const std::vector<const Experiment*>& baseline);

  const ClusterFacts* cluster_;
  const Options* options_;
  Judgement judgement_;
  bool flaky_ = false;
  bool provable_ = true;
  int patience_ = 1;
  int baseline_sick_ = 0;
};

// Whether it works at all: wrong results, errors, crashes and hangs are sick.
Answer works(const Experiment& run);

// Bus bandwidth (GB/s) at the largest size that is large enough to judge, the median over the
// ranks; none where nothing was timed.
std::optional<double> speed_of(const Experiment& run);

}  // namespace distdoctor::bisect
