// From runs to a verdict, for what does not work and for what is slow. Each of them asks the series
// until it knows, or until there may be no more runs.
#pragma once

#include "bisect/links.h"
#include "bisect/series.h"
#include "bisect/shape.h"
#include "bisect/switches.h"
#include "bisect/where.h"

#include <optional>
#include <string>

namespace distdoctor::bisect {

struct Ask {
  const ClusterFacts* cluster;
  const Options* options;
  const Shape* shape;
  Series* series;

  [[nodiscard]] Setup setup(std::string what, Switches switches) const {
    return {.what = std::move(what), .switches = std::move(switches), .places = shape->places};
  }
  [[nodiscard]] Setup baseline() const { return setup("baseline", {}); }
};

// The baseline does not work. No isolation: nothing that was tried tells why.
Known<std::optional<Isolation>> find_broken(const Ask& ask);
// It works, at `speed`, below what `limit` allows.
Known<std::optional<Isolation>> find_slow(const Ask& ask,
                                          double speed,
                                          const std::optional<LinkLimit>& limit);
// A place whose own part takes more than twice as long as the others', in two rounds.
Known<std::optional<Isolation>> find_straggler(const Ask& ask);

// The sick run first, then the sound one, then the rest of both.
std::vector<int> proof_of(const std::vector<int>& sick, const std::vector<int>& sound);
std::vector<RunPlace> places_in(const Where& where);

// Nothing but the want of further runs: then what is known so far has to do.
inline bool out_of_runs(const Wanted& wanted) {
  return !wanted.experiment;
}

}  // namespace distdoctor::bisect
