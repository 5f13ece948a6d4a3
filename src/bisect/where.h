// Where it is sick: the smallest group of places that still is, found by halving (Junker's
// QuickXplain: about k log2 n runs for k places of n), and tried against known-good partners.
#pragma once

#include "bisect/series.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace distdoctor::bisect {

// What stays or goes as one: a GPU, or a node with all of its ranks.
struct Unit {
  RunPlace place = {};
  std::vector<RunPlace> members = {};
  bool operator==(const Unit&) const = default;
};

struct Where {
  std::vector<Unit> units = {};  // empty: nothing less than all of them
  bool pair = false;             // two that fail with each other only
  std::vector<int> sick = {};    // the runs that show it
  std::vector<int> sound = {};   // without the units
};

template <class T>
using IsSick = std::function<Known<bool>(const std::vector<T>&)>;

namespace where_detail {

template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

template <class T>
Known<std::vector<T>> explain(const IsSick<T>& sick,
                              const std::vector<T>& background,
                              bool added,
                              const std::vector<T>& all) {
  if (added) {
    const Known<bool> enough = sick(background);
    if (!enough) return std::unexpected(enough.error());
    if (*enough) return std::vector<T>{};
  }
  if (all.size() <= 1) return all;
  const auto half = all.begin() + static_cast<std::ptrdiff_t>((all.size() + 1) / 2);
  const std::vector<T> first(all.begin(), half);
  const std::vector<T> second(half, all.end());
  const auto of_second = explain(sick, joined(background, first), true, second);
  if (!of_second) return of_second;
  const auto of_first = explain(sick, joined(background, *of_second), !of_second->empty(), first);
  if (!of_first) return of_first;
  return joined(*of_first, *of_second);
}

}  // namespace where_detail

// The smallest part of `all`, which is sick as a whole, that is sick by itself; in their order.
template <class T>
Known<std::vector<T>> smallest(const IsSick<T>& sick, const std::vector<T>& all) {
  return where_detail::explain(sick, {}, false, all);
}

// Places are sought with `switches` in force. Groups of less than `least` ranks cannot show the
// fault, and are not run.
class Search {
 public:
  Search(Series& series, Switches switches, std::size_t least)
      : series_(&series), switches_(std::move(switches)), least_(least) {}

  Known<Reading> run(const std::vector<Unit>& units, int at_least = 1) const;
  Known<Where> among(const std::vector<Unit>& units) const;
  // Which of them are sick alone. Many are halved, which finds one.
  Known<std::vector<Unit>> sick_alone(const std::vector<Unit>& units) const;

 private:
  Known<bool> sick(const std::vector<Unit>& units) const;
  Known<bool> with_partner(const Unit& unit, const Unit& partner) const;
  Known<Where> pair(const std::vector<Unit>& two, const std::vector<Unit>& rest) const;
  Known<Where> confirmed(Where where,
                         const std::vector<Unit>& sick_group,
                         const std::vector<Unit>& rest) const;

  Series* series_;
  Switches switches_;
  std::size_t least_;
};

std::vector<Unit> units_of_nodes(const std::vector<RunPlace>& places);
std::vector<Unit> units_of_devices(const std::vector<RunPlace>& places);

// "node0:0-3 node2:1,4": for Experiment::what.
std::string places_text(const std::vector<RunPlace>& places);

}  // namespace distdoctor::bisect
