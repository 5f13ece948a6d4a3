// Measured wires of a World, which has none: what a bisect over TCP leaves behind.
#pragma once

#include "support/check_cases.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace distdoctor::testing {

using Speeds = std::vector<WireSpeed>;

// GB/s by one stream and by eight, over eth1.
inline Speeds speeds(double one, double eight) {
  return {{1, one, 0.7}, {8, eight, 0.7}};
}
// The same, and the larger number once more.
inline Speeds confirmed(double one, double eight) {
  return {{1, one, 0.7}, {8, eight, 0.7}, {8, eight, 0.7}};
}

inline void carry(World& w, std::size_t from, std::size_t to, Speeds rows) {
  w.pair(from, to).paths[0].wire = std::move(rows);
}

// The ring over so many nodes, both ways, as bisect measures it.
inline void carry_all(World& w, const Speeds& rows, std::size_t size = 4) {
  w.cluster.nodes.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t next = (i + 1) % size;
    carry(w, i, next, rows);
    carry(w, next, i, rows);
  }
}

}  // namespace distdoctor::testing
