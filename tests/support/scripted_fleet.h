// A fake of the fleet: no node is there, each ask is answered by script, and kept.
#pragma once

#include "fleet/fleet.h"

#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace distdoctor::testing {

class ScriptedFleet final : public fleet::Fleet {
 public:
  // `round`: how many times asks were sent before.
  using Answers = std::function<Observed<Answer>(std::size_t round, const fleet::Ask& ask)>;
  explicit ScriptedFleet(Answers answer) : answer_(std::move(answer)) {}

  [[nodiscard]] std::vector<fleet::PeerState> peers() const override { return {}; }
  std::vector<Observed<Answer>> ask(std::span<const fleet::Ask> asks, Deadline by) override {
    std::vector<Observed<Answer>> answers;
    for (const fleet::Ask& one : asks) answers.push_back(answer_(rounds.size(), one));
    rounds.emplace_back(asks.begin(), asks.end());
    ends.push_back(by);
    return answers;
  }
  void interrupt() override {}
  void close() override {}

  [[nodiscard]] const RunRequest& asked(std::size_t round, std::size_t place = 0) const {
    return std::get<RunRequest>(rounds.at(round).at(place).request);
  }
  std::vector<std::vector<fleet::Ask>> rounds;
  std::vector<Deadline> ends;  // of each round

 private:
  Answers answer_;
};

}  // namespace distdoctor::testing
