// Numbers that look random and are not: SplitMix64 (Steele, Lea, Flood 2014).
#pragma once

#include <cstdint>

namespace distdoctor {

inline constexpr std::uint64_t kMixStep = 0x9e3779b97f4a7c15U;

// The number of a state; the sequence is that of seed + kMixStep, seed + 2 * kMixStep, ...
constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace distdoctor
