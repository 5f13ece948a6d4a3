// How fast a run of an all-reduce was: one figure, the same for whoever judges, tells or prints it.
#pragma once

#include <distdoctor/facts/experiment.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace distdoctor {

struct RunSpeed {
  std::int64_t bytes = 0;   // the largest size that was timed; 0: none was
  double bus_gb_per_s = 0;  // there, of the middle rank
};

inline RunSpeed speed_at_largest(const Experiment& run) {
  RunSpeed speed;
  std::vector<double> ranks;
  for (const RankRun& rank : run.ranks) {
    for (const RunTiming& timing : rank.timings) {
      if (timing.bytes > speed.bytes) ranks.clear();
      speed.bytes = std::max(speed.bytes, timing.bytes);
      if (timing.bytes == speed.bytes) ranks.push_back(timing.bus_gb_per_s);
    }
  }
  if (ranks.empty()) return speed;
  const auto middle = ranks.begin() + static_cast<std::ptrdiff_t>(ranks.size() / 2);
  std::ranges::nth_element(ranks, middle);
  speed.bus_gb_per_s = *middle;
  return speed;
}

}  // namespace distdoctor
