// How long ago, in words.
#pragma once

#include <array>
#include <cmath>
#include <string>

namespace distdoctor {

// "90 s", "7 min", "30 h", "3 days": a unit of which there are two at least.
inline std::string age_text(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr std::array<Unit, 3> kUnits = {{{86'400, " days"}, {3'600, " h"}, {60, " min"}}};
  for (const Unit& unit : kUnits) {
    if (seconds >= 2 * unit.seconds) {
      return std::to_string(std::lround(seconds / unit.seconds)) + unit.name;
    }
  }
  return std::to_string(std::lround(seconds)) + " s";
}

inline std::string ago_text(double seconds) {
  return age_text(seconds) + " ago";
}

}  // namespace distdoctor
