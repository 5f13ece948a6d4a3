#include "bisect/verdict.h"

#include "base/error.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace distdoctor::bisect {

std::vector<int> proof_of(const std::vector<int>& sick, const std::vector<int>& sound) {
  std::vector<int> proof;
  if (!sick.empty()) proof.push_back(sick.front());
  if (!sound.empty()) proof.push_back(sound.front());
  for (const auto& numbers : {sick, sound}) {
    for (const int number : numbers) {
      if (std::ranges::find(proof, number) == proof.end()) proof.push_back(number);
    }
  }
  return proof;
}

std::vector<RunPlace> places_in(const Where& where) {
  std::vector<RunPlace> places;
  for (const Unit& unit : where.units) places.push_back(unit.place);
  return places;
}

}  // namespace distdoctor::bisect
