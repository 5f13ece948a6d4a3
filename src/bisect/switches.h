// The switches that take a layer out, those that cannot matter left out, in the order in which
// public reports blame the layer.
#pragma once

#include "bisect/shape.h"

#include <string>
#include <vector>

namespace distdoctor::bisect {

struct Candidate {
  Layer layer = Layer::none;
  std::string what = {};
  Switches switches = {};
  std::vector<std::string> names = {};  // interfaces or HCAs that the switches turn away from
  int weight = 0;
};

// Which of them to try when it does not work at all. The baseline's own words and transports rule
// some out, and put others first.
std::vector<Candidate> when_broken(const Shape& shape,
                                   const Options& options,
                                   const Experiment& baseline);
// Smaller switches that the given one includes.
std::vector<Candidate> within(const Candidate& broad, const Shape& shape, const Options& options);
// When it works, but slowly: the way between nodes first, or that inside them.
std::vector<Candidate> when_slow(const Shape& shape, const Options& options, bool between_nodes);

// HCAs by name and nothing else; or all but these.
Switches only_hcas(const std::vector<std::string>& names);
Switches all_but_hcas(const std::vector<std::string>& names);

// Whether a word of the library's own speaks of /dev/shm.
bool speaks_of_shm(const RankRun& rank);

bool allowed(const Options& options, Layer layer);

}  // namespace distdoctor::bisect
