// What the test traffic leaves open, for each check that judges by it: where nothing was tried,
// nothing may be called fine. Told by its reasons, a line each, and not by its pairs.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace distdoctor {

inline constexpr std::string_view kTestTraffic = "test traffic";
inline constexpr std::string_view kMasterTraffic = "MASTER_PORT";  // an Untried of dials to it

inline constexpr std::string_view kRdmaTraffic = "RDMA messages";  // an Untried of these alone
// An Untried of all-reduces that were asked for: none was run, or they isolate nothing.
inline constexpr std::string_view kCollectives = "collectives";

inline Gap untested(std::string node, Unknown why) {
  return {.node = std::move(node), .fact = std::string(kTestTraffic), .why = std::move(why)};
}

namespace untested_detail {

inline bool has_own_check(const Untried& row) {
  return row.what == kRdmaTraffic || row.what == kCollectives;
}

inline void note_rows(const ClusterFacts& cluster, bool master, Judge& judge) {
  for (const Untried& row : cluster.untried) {
    if (has_own_check(row)) continue;
    const bool only_master = row.what == kMasterTraffic;
    const bool everything = row.what == kTestTraffic;
    if (everything || only_master == master) judge.miss(untested(row.node, row.why));
  }
}

inline bool has_reasons(const ClusterFacts& cluster) {
  return std::ranges::any_of(cluster.untried,
                             [](const Untried& row) { return !has_own_check(row); });
}

inline void note_nodes(const ClusterFacts& cluster, Judge& judge) {
  for (const NodeFacts& node : cluster.nodes) {
    if (!node.reached) judge.miss(untested(node.host, {Why::failed, "was not reached"}));
  }
}

// Facts of several origins: nobody said why these pairs are missing.
inline void note_missing(const ClusterFacts& cluster, Judge& judge) {
  std::set<std::pair<std::string_view, std::string_view>> tried;
  for (const PairFacts& pair : cluster.pairs) tried.emplace(pair.from, pair.to);
  for (const NodeFacts& from : cluster.nodes) {
    std::size_t missing = 0;
    for (const NodeFacts& to : cluster.nodes) {
      const bool wanted = from.reached && to.reached && &from != &to;
      if (wanted && !tried.contains({from.host, to.host})) ++missing;
    }
    if (missing == 0) continue;
    const std::string peers = missing == 1 ? " peer" : " peers";
    judge.miss(
        untested(from.host, {Why::not_collected, "none to " + std::to_string(missing) + peers}));
  }
}

}  // namespace untested_detail

// For checks of what passes between any two nodes.
inline void note_untested(const ClusterFacts& cluster, Judge& judge) {
  if (cluster.nodes.size() < 2) return;
  untested_detail::note_nodes(cluster, judge);
  untested_detail::note_rows(cluster, false, judge);
  for (const PairFacts& pair : cluster.pairs) {
    if (!pair.complete.known()) judge.miss(untested(pair.from, pair.complete.why()));
  }
  if (untested_detail::has_reasons(cluster)) return;
  if (cluster.pairs.empty()) return judge.miss(untested("", {Why::not_collected, "none was sent"}));
  untested_detail::note_missing(cluster, judge);
}

// For checks of what passes from `node` to MASTER_ADDR:MASTER_PORT, where no such dial was made.
inline void note_untested_master(const ClusterFacts& cluster, const NodeFacts& node, Judge& judge) {
  untested_detail::note_rows(cluster, true, judge);
  if (!node.reached) return judge.miss(untested(node.host, {Why::failed, "was not reached"}));
  const auto& master = cluster.predicted.master;
  const PairFacts* pair = find_pair(cluster, node.host, master ? master->node : "");
  if (pair != nullptr && !pair->complete.known()) {
    return judge.miss(untested(node.host, pair->complete.why()));
  }
  if (untested_detail::has_reasons(cluster)) return;
  if (cluster.pairs.empty()) return judge.miss(untested("", {Why::not_collected, "none was sent"}));
  judge.miss(untested(node.host, {Why::not_collected, "none to MASTER_PORT"}));
}

}  // namespace distdoctor
